"""What copies of objects that hold an open Memory do: they share it, and cannot leave the process."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from dellm import InvalidInput


def not_pickled(one: Any, _protocol: object = None) -> NoReturn:
    """Refuse to pickle an object; takes the place of __reduce_ex__. Raises InvalidInput."""
    raise InvalidInput(
        f"A {type(one).__name__} with a memory cannot be pickled: that is open in this process.",
        remedy="Make it anew in the other process, with Memory.open().",
    )


class Shared:
    """An object whose copies are itself, since it may be used from anywhere at the same time."""

    def __copy__(self) -> Self:
        """Return this very object."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return this very object."""
        return self

    __reduce_ex__ = not_pickled
