"""Whether the figures of a set of sessions rise or fall over days."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

By = Literal["day", "session"]


@dataclass(frozen=True)
class Trend:
    """What `tt trend` says (docs/sets.md). Sessions with another model, other settings or another
    machine are in groups of their own, from 0; `group` is the first column of both data frames.
    """

    by: By
    groups: pd.DataFrame
    """One row per group: model, sessions, and how many of them were disturbed."""
    points: pd.DataFrame
    """One row per figure and day (or session): median and 95 % interval; NaN: no session has it."""
    figures: pd.DataFrame
    """One row per figure: p, slope per day (or session) and its interval, the sentence; NaN: too few
    points."""

    @property
    def sentences(self) -> list[str]:
        return list(self.figures.sentence)

    def _repr_html_(self) -> str:
        return self.figures[["group", "figure", "sentence"]].to_html(index=False)


def trend_of(text: str) -> Trend:
    """From the JSON of `tt trend --json`."""
    found = json.loads(text)
    groups: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    for number, group in enumerate(found["groups"]):
        groups.append(
            {
                "group": number,
                "model": group["model"],
                **{name: group[name] for name in ("sessions", "disturbed_sessions")},
            }
        )
        for figure in group["figures"]:
            about = {"group": number, "figure": figure["name"], "unit": figure["unit"]}
            for place, median in zip(group["points"], figure["points"], strict=True):
                values = median or {"sessions": 0, "median": None, "low": None, "high": None}
                points.append({**about, "at": place["at"], "names": place["sessions"], **values})
            test = figure["trend"] or {}
            figures.append(
                {
                    **about,
                    **{name: test.get(name) for name in ("points", "p", "slope", "low", "high")},
                    "relative": figure["relative"],
                    "significant": figure["significant"],
                    "sentence": figure["sentence"],
                }
            )
    frame = pd.DataFrame(points)
    frame["at"] = pd.to_datetime(frame["at"], utc=True)
    return Trend(
        by=found["by"],
        groups=pd.DataFrame(groups),
        points=_numbers(frame, "median", "low", "high"),
        figures=_numbers(
            pd.DataFrame(figures), "points", "p", "slope", "low", "high", "relative"
        ),
    )


def _numbers(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(columns, float))
