/** Style sheet of the report's page. */
export const PAGE_STYLE = `:root {
  color-scheme: light dark;
  --ground: light-dark(#ffffff, #16181c);
  --ink: light-dark(#1d2126, #e4e6ea);
  --soft: light-dark(#5b6470, #9aa3af);
  --rule: light-dark(#d9dde3, #343a43);
  --wrong: light-dark(#b3261e, #ff8a80);
}
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: .95rem; margin: 0 0 .3rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1.6rem 2.4rem; align-items: flex-start; }
figure { margin: 0; max-width: 100%; }
figcaption { color: var(--soft); font-size: .82rem; max-width: 62ch; width: 0; min-width: 100%; }
.chart, .table { overflow-x: auto; }
.chart svg { display: block; }
table { border-collapse: collapse; font-size: .82rem; margin: .6rem 0; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.failures h2 { color: var(--wrong); border-color: var(--wrong); }
.failures td { white-space: normal; }
summary { cursor: pointer; }
`;
