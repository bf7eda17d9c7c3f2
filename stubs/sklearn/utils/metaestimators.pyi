from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

def available_if(check: Callable[[Any], bool]) -> Callable[[_F], _F]: ...
