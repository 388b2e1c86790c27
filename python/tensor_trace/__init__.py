"""Sessions of tensor-trace as data frames: what llama.cpp did to memory.

>>> import tensor_trace as tt
>>> with tt.open("s.ttrace") as session:
...     print(session.info["tokens"], "tokens")
19 tokens

docs/python.md of tensor-trace has examples.
"""

from . import figures
from .analyzer import TraceAnalyzer
from .errors import (
    DamagedSession,
    MissingSession,
    NewerVersion,
    NoData,
    RunningSession,
    SessionError,
)
from .recording import record
from .session import Session, open
from .session_set import SessionSet, open_set
from .trend import Trend

__version__ = "0.2.0"

__all__ = [
    "DamagedSession",
    "MissingSession",
    "NewerVersion",
    "NoData",
    "RunningSession",
    "Session",
    "SessionError",
    "SessionSet",
    "TraceAnalyzer",
    "Trend",
    "figures",
    "open",
    "open_set",
    "record",
]
