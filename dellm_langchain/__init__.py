"""DeLLM for LangChain and LangGraph: a checkpointer that can forget."""
