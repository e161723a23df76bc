"""Recognise a deletion request in what a user says, and what it is about (the paper's V-C, VII-A).

``recognise(message)`` gives a :class:`Request`. It never deletes: the targets go into a plan.
"""

from __future__ import annotations

from dellm.requests.classifier import Classifier, EmbeddingClassifier
from dellm.requests.recognise import recognise
from dellm.requests.request import Request, RequestKind, Target

__all__ = ["Classifier", "EmbeddingClassifier", "Request", "RequestKind", "Target", "recognise"]
