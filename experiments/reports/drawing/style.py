"""The style sheet of reports. Colours are variables: one set for light pages and paper, another for dark ones."""

# After Okabe & Ito, whose colours can be told apart by the colour-blind; darker or lighter so that each has a contrast
# of 3 at least with the page. The second four are dashed as well.
LIGHT = {
    "page": "#ffffff",
    "text": "#1c2024",
    "soft": "#5b6470",
    "edge": "#d5dae0",
    "panel": "#f5f7f9",
    "other": "#9aa3ae",
    "accent": "#0067a3",
    "colour0": "#0072b2",
    "colour1": "#c85200",
    "colour2": "#00805c",
    "colour3": "#a8327f",
    "colour4": "#8a6d00",
    "colour5": "#4b4bc8",
    "colour6": "#333333",
    "colour7": "#b3261e",
}
DARK = {
    "page": "#14171a",
    "text": "#e6e9ec",
    "soft": "#a3acb6",
    "edge": "#343b43",
    "panel": "#1d2226",
    "other": "#6f7984",
    "accent": "#6cc0f5",
    "colour0": "#56b4e9",
    "colour1": "#ff8f4d",
    "colour2": "#2ec79b",
    "colour3": "#e993cc",
    "colour4": "#e8c547",
    "colour5": "#a5a5ff",
    "colour6": "#f2f2f2",
    "colour7": "#ff7b72",
}
_DASHES = {4: "9 4", 5: "2 3", 6: "12 3 2 3", 7: "5 3"}


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def sheet() -> str:
    lines = [f".colour{n} {{ --line: var(--colour{n}); }}" for n in range(8)]
    dashes = [f".colour{n} .curve {{ stroke-dasharray: {dash}; }}" for n, dash in _DASHES.items()]
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}",
            f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}",
            _RULES,
            *lines,
            *dashes,
        ]
    )


_RULES = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(0.8rem, 3vw, 2.5rem) 4rem; max-width: 84rem; background: var(--page);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.35rem; margin: 3rem 0 0.8rem; padding-top: 0.8rem; border-top: 2px solid var(--edge); }
h3 { font-size: 1.05rem; margin: 1.8rem 0 0.5rem; }
a { color: var(--accent); }
code, pre { font: 0.9em/1.45 ui-monospace, monospace; }
pre { background: var(--panel); padding: 0.7rem; overflow-x: auto; border-radius: 6px; overflow-wrap: normal; }
.soft, .remark, figcaption { color: var(--soft); font-size: 0.92rem; }
.remark { border-left: 4px solid var(--edge); padding-left: 0.7rem; }
nav ul { columns: 20rem; padding-left: 1.2rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr)); gap: 0.6rem 1.5rem; margin: 0; }
dt { color: var(--soft); font-size: 0.85rem; }
dd { margin: 0; }
figure { margin: 1rem 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem 1.5rem; }
.charts svg { width: 100%; max-width: 44rem; height: auto; display: block; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; padding: 0; margin: 0 0 0.6rem;
  font-size: 0.92rem; }
.swatch { vertical-align: middle; }
figcaption { margin-top: 0.5rem; max-width: 70rem; }
.chart text { fill: var(--text); font: 13px system-ui, sans-serif; }
.chart .tick { fill: var(--soft); }
.frame { fill: none; stroke: var(--edge); }
.grid { stroke: var(--edge); stroke-width: 1; }
.line { --line: var(--other); color: var(--line); }
.curve { fill: none; stroke: var(--line); stroke-width: 2.2; stroke-linejoin: round; }
.band { fill: var(--line); fill-opacity: 0.2; stroke: none; }
.end { fill: var(--line); }
.line:hover .curve { stroke-width: 4; }
.other .curve { stroke-width: 0.9; }
.swatch .other .curve { stroke-width: 2; }
.other .end, .other .band { display: none; }
.wide { overflow-x: auto; }
.propnet { width: 100%; min-width: 44rem; height: auto; }
.propnet text { fill: var(--text); font: 11px system-ui, sans-serif; }
.propnet .wire { fill: none; stroke: var(--other); stroke-width: 0.8; }
.propnet .inverted { stroke: var(--colour1); stroke-dasharray: 3 2; }
.propnet circle { fill: var(--page); stroke: var(--text); }
.propnet .register { fill: var(--colour0); }
.propnet .move { fill: var(--colour4); }
.propnet .output { fill: var(--colour2); }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.9rem 0.35rem 0;
  border-bottom: 1px solid var(--edge); }
th { color: var(--soft); font-weight: 600; font-size: 0.85rem; }
.runs td, .runs th { white-space: nowrap; overflow-wrap: normal; }
.scores { width: auto; margin-bottom: 1rem; }
.runs td.free { white-space: normal; min-width: 7rem; }
small { color: var(--soft); font-size: 0.85em; }
.runs .number { padding-right: 1.6rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; padding: 0.25rem 0; }
details details { margin-left: 1rem; }
.policies { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1rem 2rem; }
.policies h4 { margin: 0.6rem 0 0.2rem; }
.policy td { width: 50%; }
.option { display: grid; grid-template-columns: minmax(4rem, 1fr) minmax(3rem, 1.2fr) 3.6rem; gap: 0.5rem;
  align-items: center; }
.meter { height: 0.6rem; background: var(--panel); border-radius: 3px; overflow: hidden; }
.meter span { display: block; height: 100%; background: var(--accent); }
@media (max-width: 640px) {
  dl { grid-template-columns: 1fr 1fr; gap: 0.6rem 1rem; }
  .runs small { display: block; }
  .chart text { font-size: 18px; }
  .curve { stroke-width: 3; }
  .policy tr, .policy td { display: block; width: auto; }
  .policy tr { border-bottom: 1px solid var(--edge); }
  .policy td { border: 0; padding: 0.15rem 0; }
  .policy thead { display: none; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3 { break-after: avoid; }
  figure, tr, dl { break-inside: avoid; }
  .charts { grid-template-columns: 1fr 1fr; }
  .wide { overflow: visible; }
  .runs td, .runs th { white-space: normal; font-size: 8pt; padding-right: 0.6rem; }
  .chart text { font-size: 16px; }
}
"""
