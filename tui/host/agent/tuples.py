"""``NamedTuple`` without ``typing``, which would be a twentieth of what each agent holds for as long as it lives."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Maker(type):
        def __new__(maker, name, bases, body):
            if not bases:
                return super().__new__(maker, name, bases, body)
            fields = list(body["__annotations__"])
            defaults = [body[field] for field in fields if field in body]
            base = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            more = {key: value for key, value in body.items() if key not in fields}
            return type(name, (base,), {"__slots__": (), **more})

    class NamedTuple(metaclass=_Maker):
        """A tuple whose fields are the annotations of its class."""
