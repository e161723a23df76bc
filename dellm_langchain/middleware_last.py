"""A model call whose prompt is looked at last of all, whatever other middleware stands beside.

LangChain puts the first middleware of a list outermost, so one that is not the last cannot see what
the others make of its prompt. But the model itself can: it turns its input into messages by one
method, for invoke, stream and their async twins, bound to tools or not. The model of the request is
replaced by a twin that shares all of its state, and whose method leaves out what must not be there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Self, cast

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue

Look = Callable[[list[BaseMessage]], list[BaseMessage]]
_SLOTS = (
    "__dict__",
    "__pydantic_fields_set__",
    "__pydantic_extra__",
    "__pydantic_private__",
)


class LastRequest(ModelRequest[Any]):
    """A request whose model looks at its prompt last; also when other middleware replaces it."""

    look: Look

    @classmethod
    def of(cls, request: ModelRequest[Any], look: Look) -> Self:
        """Return the request with a model that shows its prompt to `look` before it is sent."""
        made = cls(
            model=looking(request.model, look),
            messages=request.messages,
            system_message=request.system_message,
            tool_choice=request.tool_choice,
            tools=request.tools,
            response_format=request.response_format,
            state=request.state,
            runtime=request.runtime,
            model_settings=request.model_settings,
        )
        object.__setattr__(made, "look", look)
        return made

    def override(self, **overrides: Any) -> Self:
        """Return a copy with other values, whose model still looks last."""
        made = super().override(**overrides)
        object.__setattr__(made, "look", self.look)
        object.__setattr__(made, "model", looking(made.model, self.look))
        return cast("Self", made)


def looking(model: Any, look: Look) -> Any:
    """Return a twin of a chat model that shows `look` every prompt; of anything else, itself.

    The twin is an instance of the model's class, and shares its fields: what either of them
    changes, both have.
    """
    if not isinstance(model, BaseChatModel):
        return model
    own = type(model)
    twin = model if _looks(own) else object.__new__(_twin(own))
    if twin is not model:
        for name in _SLOTS:
            object.__setattr__(twin, name, getattr(model, name))
    object.__setattr__(twin, "_dellm_look", look)
    return twin


def _looks(cls: type[BaseChatModel]) -> bool:
    return "_dellm_look" in cls.__dict__.get("__slots__", ())


@cache
def _twin(cls: type[BaseChatModel]) -> type[BaseChatModel]:
    """Return the subclass that looks; tracers and caches find the class's own name."""

    def convert(self: Any, model_input: Any) -> PromptValue:
        prompt: PromptValue = cls._convert_input(self, model_input)
        look = getattr(self, "_dellm_look", None)  # a copy of a twin has none
        if look is None:
            return prompt
        messages = prompt.to_messages()
        seen = look(messages)
        return prompt if seen is messages else ChatPromptValue(messages=seen)

    kind: Any = type(cls)
    made = kind(
        cls.__name__,
        (cls,),
        {
            "__slots__": ("_dellm_look",),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "_convert_input": convert,
            "model_config": {"defer_build": True},
        },
    )
    return cast("type[BaseChatModel]", made)
