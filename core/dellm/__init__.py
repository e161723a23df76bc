"""DeLLM: agent memory that records what every reply was made from, and can therefore forget.

The model: everything stored is a *record*; a reply's parents are exactly the records that were in
its prompt; forgetting a record forgets all that was made from it. See Memory.
"""

from .assistant import Assistant
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
from .systems import FullHistory, NoMemory, Reply, System
from .verify import VerifyReport

__all__ = [
    "STRICT",
    "Assistant",
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
    "FullHistory",
    "InvalidInput",
    "LedgerEntry",
    "Match",
    "Memory",
    "ModelError",
    "NoMemory",
    "NotFound",
    "NothingMatched",
    "Plan",
    "PlanChanged",
    "PreviewRequired",
    "Reach",
    "Receipt",
    "Record",
    "Reply",
    "ScanReport",
    "SchemaError",
    "ScrubReport",
    "SelectorError",
    "Status",
    "StorageError",
    "System",
    "UnsupportedHere",
    "VerifyReport",
    "WeightsError",
    "depth",
    "estimated_tokens",
    "influence",
    "prompt",
    "recognise",
]
