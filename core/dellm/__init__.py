"""DeLLM: agent memory that records what every reply was made from, and can therefore forget.

The model: everything stored is a *record*; a reply's parents are exactly the records that were in
its prompt; forgetting a record forgets all that was made from it. See Memory.
"""

from .context import estimated_tokens, prompt
from .drawing import Drawing
from .embedding import Embedder
from .errors import (
    ContextForgotten,
    DatabaseClosed,
    DellmError,
    EmbedderError,
    InvalidInput,
    ModelError,
    NotFound,
    NothingMatched,
    PlanChanged,
    PreviewRequired,
    SchemaError,
    SelectorError,
    StorageError,
    UnsupportedHere,
    WeightsError,
)
from .explaining import Explanation
from .ledger import LedgerEntry
from .memory import Memory
from .plan import STRICT, Plan, Reach, depth, influence
from .receipts import Receipt
from .records import Chosen, Context, Draft, Record, Status
from .requests import recognise
from .scan import ScanReport
from .scrub import ScrubReport
from .selectors import Match
from .verify import VerifyReport

__all__ = [
    "STRICT",
    "Chosen",
    "Context",
    "ContextForgotten",
    "DatabaseClosed",
    "DellmError",
    "Draft",
    "Drawing",
    "Embedder",
    "EmbedderError",
    "Explanation",
    "InvalidInput",
    "LedgerEntry",
    "Match",
    "Memory",
    "ModelError",
    "NotFound",
    "NothingMatched",
    "Plan",
    "PlanChanged",
    "PreviewRequired",
    "Reach",
    "Receipt",
    "Record",
    "ScanReport",
    "SchemaError",
    "ScrubReport",
    "SelectorError",
    "Status",
    "StorageError",
    "UnsupportedHere",
    "VerifyReport",
    "WeightsError",
    "depth",
    "estimated_tokens",
    "influence",
    "prompt",
    "recognise",
]
