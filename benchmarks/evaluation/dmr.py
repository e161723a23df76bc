"""DMR, and a task of its kind made of MSC: what was said sessions ago is asked for.

With the official file (`msc_self_instruct.jsonl` in `dmr/` of the data folder) the paper's first 100
conversations are loaded into each system and their question is asked (Table I). With `msc/` the same
is done with probes that a rule makes of its annotated facts: ours, and not DMR. There it is known which
messages say the answer, so they are forgotten and the question is asked again. Whichever of the
two folders is there is run.
"""

from __future__ import annotations

from .results import Report
from .running import MissingData, Run
from .sets import dmr, msc
from .talking import reported
from .talks import talks_of_dmr, talks_of_msc

SMALL = 2  # conversations of the sample for CI
MADE = (
    "Ours, and not DMR: a probe is a sentence of a fact that the user disclosed, its last telling "
    "word left out; only the messages that disclose the fact say that word. After those are "
    "forgotten, one after another, each named by its words, a right answer is a leak or a guess. "
    "(Full history is only asked to; no probe tests replies that repeat an answer: see tables.)",
)


def run(run: Run) -> list[Report]:
    """Run DMR, the task made of MSC, or both: what the data folder has.

    Raises MissingData if it has neither `dmr/` nor `msc/`, InvalidInput if a file is not the official
    one.
    """
    made = []
    if run.has("dmr"):
        dialogues = list(dmr.load(run.folder("dmr")))[: dmr.PAPER]
        talks = run.first(talks_of_dmr(dialogues), SMALL)
        made.append(reported(run, "dmr", "DMR, first 100 conversations", talks))
    if run.has("msc"):
        talks = run.first(talks_of_msc(msc.load(run.folder("msc")), seed=run.seed), SMALL)
        made.append(reported(run, "dmr-msc", "Facts of MSC asked for, and forgotten", talks, *MADE))
    if not made:
        raise MissingData("The data folder (--data DIR) holds neither dmr/ nor msc/.")
    return made
