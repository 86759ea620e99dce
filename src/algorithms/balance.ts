/** How tiles are spread over the device: all with their whole depth, all split, or only those beyond whole waves. */
export const BALANCES = ["auto", "none", "split-k", "stream-k"] as const;

/** One of them; `auto` takes what the model predicts to be fastest. */
export type Balance = typeof BALANCES[number];
