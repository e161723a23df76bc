"""Figures, drawn from saved reports and from nothing else.

`python -m benchmarks.evaluation.figures` draws every figure whose reports are in the folder of
results, and says which reports are missing. Colours are those of Okabe and Ito, which people with
any kind of colour vision can tell apart; lines differ in their markers too.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .results import RESULTS, Cell, Number, Report, load

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DOTS = 96  # per inch
MARKERS = "osD^v"
MODELS = ("canary", "extractive")
HOPS = {"depth(0)": "o", "depth(1)": "^", "depth(2)": "s", "strict": "*"}
MARKS = {**HOPS, "influence": "x"}
HINTS = {"depth(0)": "the fact alone", "strict": "all made from it"}

Row = Mapping[str, Cell | Number]
Reports = Mapping[str, Report]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: its file's name without the ending, the reports it needs, and what draws it."""

    name: str
    needs: tuple[str, ...]
    draw: Callable[[Reports], Figure]


@dataclass(frozen=True, slots=True)
class Panel:
    """The columns of one panel, shares all of them, and whether "higher" or "lower" is better."""

    columns: tuple[str, ...]
    better: str


def saved(folder: Path = RESULTS) -> dict[str, Report]:
    """Return every report of a folder by its name; none where there is no folder."""
    found = (load(path) for path in sorted(folder.glob("*.json")))
    return {one.name: one for one in found}


def sheet(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Return a figure of rows x columns axes; its size is in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=DOTS, layout="constrained")
    FigureCanvasAgg(figure)  # no window, and no state shared with whoever draws besides
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(visible=True, color="#DDDDDD", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes


def percent(cell: Cell | Number | None) -> float:
    """Return a share as per cent; not a number where there is none."""
    value = cell.value if isinstance(cell, Number) else None
    return float("nan") if value is None else 100 * value


def reaches(cell: Cell | Number | None) -> tuple[float, float]:
    """Return how far an interval reaches below and above its value, in per cent."""
    if not isinstance(cell, Number) or cell.value is None or cell.low is None or cell.high is None:
        return 0.0, 0.0
    return max(100 * (cell.value - cell.low), 0.0), max(100 * (cell.high - cell.value), 0.0)


def matching(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows that have these cells; an underscore in a name stands for a space."""
    named = {name.replace("_", " "): value for name, value in wanted.items()}
    return [row for row in rows if all(row.get(name) == value for name, value in named.items())]


# the ablation: leaks against what is taken


def tradeoff(reports: Reports) -> Figure:
    """Draw how much each reach takes against what it leaks, for several contexts."""
    figure, axes = sheet(2, 2, (9.6, 7.2))
    for line, model in zip(axes, MODELS, strict=True):
        size, recent = (reports[f"ablation-{part}-{model}"].rows for part in ("size", "recent"))
        size = matching(size, threshold="none", named_by="id")
        by_k = {f"top {k}": matching(size, k=k) for k in (1, 3, 5, 10, 20)}
        _tradeoff(line[0], by_k, f"{model}: top k, no threshold")
        plain = matching(recent, k=5, by="meaning", questions_kept="yes", named_by="id")
        by_last = {f"last {n}": matching(plain, last=n) for n in ("0", "2", "5", "all")}
        _tradeoff(line[1], by_last, f"{model}: top 5 over 0.25, and the last n")
    for one in axes[:, 0]:
        one.set_ylabel("personas whose forgotten answer is left, %\n(lower is better)")
    for one in axes[-1]:
        one.set_xlabel("records that go, % of the memory (lower is better)")
    for one in axes[-1]:  # their upper right is empty
        one.legend(fontsize=8, loc="upper right")
    _reach_legend(figure, HOPS, "0.8 to 0.05")
    return figure


def locomo_replies(reports: Reports) -> Figure:
    """Draw what each reach loses of other questions against the replies that still tell."""
    figure, axes = sheet(1, 2, (9.6, 4.4))
    rows = reports["locomo-replies-extractive"].rows
    contexts = list(dict.fromkeys(str(row["context"]) for row in rows))
    columns = ("others lose all evidence", "a reply still tells")
    for one, replies in zip(axes[0], dict.fromkeys(row["replies"] for row in rows), strict=True):
        chats = {name: matching(rows, context=name, replies=replies) for name in contexts}
        _tradeoff(one, chats, f"replies {replies}", columns)
        one.set_xlabel("other questions that lose all their evidence, %\n(lower is better)")
    axes[0][0].set_ylabel("questions whose answer a reply still tells, %\n(lower is better)")
    axes[0][1].legend(fontsize=8, loc="upper right", title="context", title_fontsize=8)
    _reach_legend(figure, ("depth(0)", "depth(1)", "strict"), "0.5 to 0.02")
    return figure


def _tradeoff(
    axes: Axes,
    chats: Mapping[str, list[Row]],
    title: str,
    columns: tuple[str, str] = ("taken, of all", "leaked: memory"),
) -> None:
    for colour, (label, rows) in zip(COLOURS, chats.items(), strict=False):
        hops = [row for row in rows if row["reach"] in HOPS]
        _line(axes, hops, colour, "-", label, columns)
        bounded = [row for row in rows if str(row["reach"]).startswith("influence")]
        _line(axes, bounded, colour, ":", None, columns)
    axes.set_title(title, fontsize=10)
    axes.set_ylim(-4, 104)
    axes.set_xlim(left=0)


def _line(
    axes: Axes,
    rows: Sequence[Row],
    colour: str,
    style: str,
    label: str | None,
    columns: tuple[str, str],
) -> None:
    across, up = ([percent(row[column]) for row in rows] for column in columns)
    axes.plot(across, up, style, color=colour, linewidth=1.2, label=label)
    for row, x, y in zip(rows, across, up, strict=True):
        mark = MARKS[str(row["reach"]).partition("(")[0]] if style == ":" else None
        axes.plot(x, y, mark or HOPS[str(row["reach"])], color=colour, markersize=6)


def _reach_legend(figure: Figure, hops: Iterable[str], influences: str) -> None:
    from matplotlib.lines import Line2D

    shown = [*hops, "influence"]
    hints = {**HINTS, "influence": influences}
    marks = [
        Line2D([], [], color="#555555", marker=MARKS[one], linestyle="-" if one in HOPS else ":")
        for one in shown
    ]
    names = [f"{one} ({hints[one]})" if one in hints else one for one in shown]
    figure.legend(marks, names, loc="outside lower center", ncols=len(marks), fontsize=8)


def settings(reports: Reports) -> Figure:
    """Draw, for every way to choose contexts, what a strict forget takes and what is answered."""
    figure, axes = sheet(1, 2, (9.6, 5.4))
    for shift, colour, model in zip((-0.17, 0.17), COLOURS, MODELS, strict=False):
        rows = {
            _named(row): row
            for part in ("size", "recent")
            for row in matching(
                reports[f"ablation-{part}-{model}"].rows, reach="strict", named_by="id"
            )
        }
        for one, column in zip(axes[0], ("taken, of all", "retained after"), strict=True):
            cells = [row[column] for row in rows.values()]
            _dots(one, cells, shift, colour, model, MARKERS[shift > 0])
            one.set_yticks(range(len(rows)), list(rows), fontsize=8)
    _finish(axes[0])
    return figure


def _named(row: Row) -> str:
    least = "no threshold" if row["threshold"] == "none" else f"over {row['threshold']}"
    parts = [f"top {row['k']}", least]
    if row["last"] != "0":
        parts.append("whole conversation" if row["last"] == "all" else f"last {row['last']}")
    if row["by"] != "meaning":
        parts.append("or by keyword")
    if row["questions kept"] == "no":
        parts.append("questions not kept")
    return ", ".join(parts)


def _dots(
    axes: Axes,
    cells: Sequence[Cell | Number],
    shift: float,
    colour: str,
    label: str,
    mark: str,
) -> None:
    across = [percent(cell) for cell in cells]
    bars = list(zip(*(reaches(cell) for cell in cells), strict=True))
    up = [place + shift for place in range(len(cells))]
    axes.errorbar(across, up, xerr=bars, fmt=mark, color=colour, label=label, markersize=4)


def _finish(line: Sequence[Axes]) -> None:
    line[0].set_xlabel("records that go with one fact, % of the memory\n(lower is better)")
    line[1].set_xlabel("the other questions still right, %\n(higher is better)")
    line[1].tick_params(labelleft=False)
    line[0].set_xlim(left=0)
    line[1].set_xlim(-3, 103)
    for one in line:
        one.invert_yaxis()
    line[1].legend(fontsize=8, loc="lower left", title="model", title_fontsize=8)


# tables whose rows are compared: a dot for each share, with its interval


def compared(rows: Sequence[Row], label: Callable[[Row], str], panels: Sequence[Panel]) -> Figure:
    """Draw rows beneath each other, and in each panel a dot for each of its columns."""
    figure, axes = sheet(1, len(panels), (9.6, 1.6 + 0.3 * len(rows)))
    for one, panel in zip(axes[0], panels, strict=True):
        step = 0.5 / len(panel.columns)
        for place, (column, colour) in enumerate(zip(panel.columns, COLOURS, strict=False)):
            shift = step * (place - (len(panel.columns) - 1) / 2)
            _dots(one, [row.get(column) for row in rows], shift, colour, column, MARKERS[place])
        one.set_yticks(range(len(rows)), [label(row) for row in rows], fontsize=8)
        one.invert_yaxis()
        one.set_xlim(-3, 103)
        one.set_xlabel(f"% ({panel.better} is better)")
        one.legend(
            fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(panel.columns)
        )
    for one in axes[0][1:]:
        one.tick_params(labelleft=False)
    return figure


def gatemem(reports: Reports) -> Figure:
    """Draw what comes back and what can still be answered on GateMem, for each way to delete."""
    return compared(
        reports["gatemem"].rows,
        lambda row: (
            f"{row['told by']}, {row['deletes by']}"
            + {"yes": ", guard", "anyway": ", guard anyway"}.get(str(row["guard"]), "")
            + (", credentials redacted" if row["credentials"] == "redact" else "")
        ),
        (
            Panel(("F_store, named", "F_store", "F_context@5"), "lower"),
            Panel(("utility@5", "utility@20", "strings lost"), "higher; lost: lower"),
        ),
    )


def forgeteval(reports: Reports) -> Figure:
    """Draw the passed cases of ForgetEval by category, and the neutral facts lost beside them."""
    return compared(
        reports["forgeteval"].rows,
        lambda row: f"{row['policy']}, {row['category']} ({row['cases']})",
        (Panel(("passed",), "higher"), Panel(("neutral facts lost",), "lower")),
    )


# Figure 8: semantic deletion at every threshold, between no memory and DeLLM

SEMANTIC = "semantic deletion ("
ASKED = {"forget": "lower", "retain": "higher"}
LEVELS = {"DeLLM (paper)": "--", "ours (LangChain)": "-.", "no memory": ":"}


def semantic(reports: Reports) -> Figure:
    """Draw what is right after a deletion against the threshold; DeLLM's and no memory's as lines."""
    figure, axes = sheet(2, 2, (9.6, 6.4))
    for line, model in zip(axes, MODELS, strict=True):
        rows = reports[f"semantic-{model}"].rows
        for one, asked, better in zip(line, ASKED, ASKED.values(), strict=True):
            _by_threshold(one, rows, f"{asked} after")
            one.set_title(f"{model}: {asked} questions", fontsize=10)
            one.set_ylabel(f"right after the deletion, %\n({better} is better)")
            one.set_ylim(-4, 104)
    for one in axes[-1]:
        one.set_xlabel("cosine from which semantic deletion removes a message")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    return figure


def _by_threshold(axes: Axes, rows: Sequence[Row], column: str) -> None:
    sizes = dict.fromkeys(str(row["personas"]) for row in rows)
    several = {size: [row for row in rows if str(row["personas"]) == size] for size in sizes}
    for place, (size, each) in enumerate(several.items()):
        found = {
            name.removeprefix(SEMANTIC).rstrip(")"): row[column]
            for name, row in ((str(row["system"]), row) for row in each)
            if name.startswith(SEMANTIC)
        }
        bars = list(zip(*(reaches(cell) for cell in found.values()), strict=True))
        across = [at + 0.1 * place for at in range(len(found))]
        up = [percent(cell) for cell in found.values()]
        form: dict[str, Any] = {"fmt": f"-{MARKERS[place]}", "color": COLOURS[place], "ms": 4}
        axes.errorbar(across, up, bars, label=f"{SEMANTIC[:-2]}, {size} personas", **form)
        axes.set_xticks(range(len(found)), list(found))
    for (system, style), colour in zip(LEVELS.items(), COLOURS[2:], strict=False):
        (row,) = matching(several[size], system=system)
        _level(axes, row[column], style, colour, f"{system}, {size} personas")


def _level(axes: Axes, cell: Cell | Number, style: str, colour: str, label: str) -> None:
    value, (below, above) = percent(cell), reaches(cell)
    axes.axhline(value, linestyle=style, color=colour, linewidth=1.4, label=label)
    axes.axhspan(value - below, value + above, color=colour, alpha=0.12, linewidth=0)


ABLATION = tuple(f"ablation-{part}-{model}" for part in ("size", "recent") for model in MODELS)
DRAWINGS = (
    Drawing("ablation-tradeoff", ABLATION, tradeoff),
    Drawing("ablation-settings", ABLATION, settings),
    Drawing("semantic", tuple(f"semantic-{model}" for model in MODELS), semantic),
    Drawing("locomo-replies", ("locomo-replies-extractive",), locomo_replies),
    Drawing("gatemem", ("gatemem",), gatemem),
    Drawing("forgeteval", ("forgeteval",), forgeteval),
)


def missing(drawing: Drawing, reports: Reports) -> list[str]:
    """Return the names of the reports that a figure still needs."""
    return [name for name in drawing.needs if name not in reports]


def draw(folder: Path = RESULTS, out: Path | None = None) -> list[str]:
    """Draw every figure whose reports are there; return a line on each, also on those missing."""
    reports = saved(folder)
    return [_drawn(one, reports, out or folder) for one in DRAWINGS]


def _drawn(drawing: Drawing, reports: Reports, out: Path) -> str:
    if lacking := missing(drawing, reports):
        return f"{drawing.name}: not drawn, for there is no {', '.join(lacking)}."
    path = out / f"{drawing.name}.png"
    path.write_bytes(png(drawing.draw(reports)))
    return f"{drawing.name}: drawn as {path.name}."


def png(figure: Figure, dots: float = DOTS, colours: int = 64) -> bytes:
    """Return a figure as a PNG of few colours, which keeps it small; `dots` per inch."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dots)
    Image.open(drawn).convert("RGB").quantize(colours).save(small, format="png", optimize=True)
    return small.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the figures of a folder of results; return 0, or 1 if none could be drawn."""
    parser = argparse.ArgumentParser(description="Draw the figures of the saved results.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    lines = draw(parser.parse_args(arguments).results)
    print(*lines, sep="\n")
    return 0 if any(": drawn" in line for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
