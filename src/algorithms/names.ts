/** The name of an algorithm in the registry; `auto` lets the planner choose one. */
export type AlgorithmName = string;
