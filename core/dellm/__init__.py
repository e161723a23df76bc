"""DeLLM: agent memory that records what every reply was made from, and can therefore forget.

The model: everything stored is a *record*; a reply's parents are exactly the records that were in
its prompt; forgetting a record forgets all that was made from it. See Memory.
"""

from typing import TYPE_CHECKING

from .context import estimated_tokens, prompt
from .derived_runs import Rebuilt
from .drawing import Drawing
from .embedding import Embedder
from .errors import (
    ContextForgotten,
    CredentialRefused,
    DatabaseClosed,
    DellmError,
    DerivationError,
    EmbedderError,
    HeldRecord,
    InvalidInput,
    ModelError,
    NotFound,
    NothingMatched,
    PlanChanged,
    PolicyError,
    PolicyRefused,
    PreviewRequired,
    RestoreCheckNeeded,
    SchemaError,
    SelectorError,
    StorageError,
    UnsupportedHere,
    WeightsError,
)
from .explaining import Explanation
from .ledger import LedgerEntry
from .loading import lazily
from .making import Made
from .memory import Memory
from .plan import STRICT, Plan, Reach, depth, influence
from .proof import Checked, Proof, check_proof
from .receipts import Receipt
from .records import Chosen, Context, Draft, Record, Status
from .scan import ScanReport
from .scrub import ScrubReport
from .selectors import Match
from .verify import VerifyReport

if TYPE_CHECKING:
    from .actor import Actor, Audience
    from .answers import Answers
    from .assistant import Assistant
    from .auditing import Audit
    from .bodies import Body
    from .cells import Atom, Cell, Fields, Literal, Many, Place, Sources, Stored, Version, Wrapped
    from .checkpoint_drafts import Checkpoint, TaskWrite
    from .checkpoints import Checkpoints, Snapshot, Written
    from .conversations import Conversations, Saying
    from .disclosures import Disclosure
    from .elsewhere import Elsewhere, Foreign
    from .embedding import HashingEmbedder, MiniLMEmbedder, OpenAIEmbedder
    from .expiry import Expiry, Swept
    from .exposures import Exposure, Exposures, Queries
    from .extracting import Extracted, Extractor, Proposed
    from .fact_model import OpenAIExtractor
    from .fact_reading import Fact
    from .fact_rules import RuleExtractor
    from .facts import Facts
    from .governed import Artefacts, Governed
    from .guards import Guard, Guards
    from .holds import Hold, Holds
    from .item_search import Item
    from .items import Items, Keep
    from .models import ExtractiveReader, Model, OpenAIModel, SmolModel
    from .policies import Policies
    from .policy import Policy, may_act
    from .policy_values import By, Decision, Retention
    from .portable import Brought
    from .providers import Provider, Providers
    from .remembered import Known, Remembered
    from .requests import Request, RequestKind, recognise
    from .restoring import Held, Loaded, StoredWrite
    from .summaries import Summaries, Summary
    from .systems import FullHistory, NoMemory, Reply, System, reply_with
    from .thread_reads import Said

# Loaded when first named: an agent that only stores and recalls waits for none of it.
_LATER = {
    "actor": ("Actor", "Audience"),
    "answers": ("Answers",),
    "assistant": ("Assistant",),
    "bodies": ("Body",),
    "cells": (
        *("Atom", "Cell", "Fields", "Literal", "Many", "Place", "Sources", "Stored"),
        *("Version", "Wrapped"),
    ),
    "checkpoint_drafts": ("Checkpoint", "TaskWrite"),
    "checkpoints": ("Checkpoints", "Snapshot", "Written"),
    "conversations": ("Conversations", "Saying"),
    "thread_reads": ("Said",),
    "disclosures": ("Disclosure",),
    "elsewhere": ("Elsewhere", "Foreign"),
    "extracting": ("Extracted", "Extractor", "Proposed"),
    "fact_model": ("OpenAIExtractor",),
    "fact_reading": ("Fact",),
    "fact_rules": ("RuleExtractor",),
    "facts": ("Facts",),
    "auditing": ("Audit",),
    "governed": ("Artefacts", "Governed"),
    "guards": ("Guard", "Guards"),
    "holds": ("Hold", "Holds"),
    "expiry": ("Expiry", "Swept"),
    "remembered": ("Known", "Remembered"),
    "portable": ("Brought",),
    "exposures": ("Exposure", "Exposures", "Queries"),
    "policies": ("Policies",),
    "policy": ("Policy", "may_act"),
    "policy_values": ("By", "Decision", "Retention"),
    "providers": ("Provider", "Providers"),
    "item_search": ("Item",),
    "items": ("Items", "Keep"),
    "summaries": ("Summaries", "Summary"),
    "restoring": ("Held", "Loaded", "StoredWrite"),
    "embedding": ("HashingEmbedder", "MiniLMEmbedder", "OpenAIEmbedder"),
    "models": ("ExtractiveReader", "Model", "OpenAIModel", "SmolModel"),
    "requests": ("Request", "RequestKind", "recognise"),
    "systems": ("FullHistory", "NoMemory", "Reply", "System", "reply_with"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}


__getattr__ = lazily(__name__, _HOME)


__all__ = [
    "STRICT",
    "Actor",
    "Answers",
    "Artefacts",
    "Assistant",
    "Atom",
    "Audience",
    "Audit",
    "Body",
    "Brought",
    "By",
    "Cell",
    "Checked",
    "Checkpoint",
    "Checkpoints",
    "Chosen",
    "Context",
    "ContextForgotten",
    "Conversations",
    "CredentialRefused",
    "DatabaseClosed",
    "Decision",
    "DellmError",
    "DerivationError",
    "Disclosure",
    "Draft",
    "Drawing",
    "Elsewhere",
    "Embedder",
    "EmbedderError",
    "Expiry",
    "Explanation",
    "Exposure",
    "Exposures",
    "Extracted",
    "ExtractiveReader",
    "Extractor",
    "Fact",
    "Facts",
    "Fields",
    "Foreign",
    "FullHistory",
    "Governed",
    "Guard",
    "Guards",
    "HashingEmbedder",
    "Held",
    "HeldRecord",
    "Hold",
    "Holds",
    "InvalidInput",
    "Item",
    "Items",
    "Keep",
    "Known",
    "LedgerEntry",
    "Literal",
    "Loaded",
    "Made",
    "Many",
    "Match",
    "Memory",
    "MiniLMEmbedder",
    "Model",
    "ModelError",
    "NoMemory",
    "NotFound",
    "NothingMatched",
    "OpenAIEmbedder",
    "OpenAIExtractor",
    "OpenAIModel",
    "Place",
    "Plan",
    "PlanChanged",
    "Policies",
    "Policy",
    "PolicyError",
    "PolicyRefused",
    "PreviewRequired",
    "Proof",
    "Proposed",
    "Provider",
    "Providers",
    "Queries",
    "Reach",
    "Rebuilt",
    "Receipt",
    "Record",
    "Remembered",
    "Reply",
    "Request",
    "RequestKind",
    "RestoreCheckNeeded",
    "Retention",
    "RuleExtractor",
    "Said",
    "Saying",
    "ScanReport",
    "SchemaError",
    "ScrubReport",
    "SelectorError",
    "SmolModel",
    "Snapshot",
    "Sources",
    "Status",
    "StorageError",
    "Stored",
    "StoredWrite",
    "Summaries",
    "Summary",
    "Swept",
    "System",
    "TaskWrite",
    "UnsupportedHere",
    "VerifyReport",
    "Version",
    "WeightsError",
    "Wrapped",
    "Written",
    "check_proof",
    "depth",
    "estimated_tokens",
    "influence",
    "may_act",
    "prompt",
    "recognise",
    "reply_with",
]
