"""DeLLM for LangChain and LangGraph: a checkpointer that can forget."""

from .saver import DeLLMSaver

__all__ = ["DeLLMSaver"]
