"""A row of scripts/bench: a thing and its bound, their ratio and its bar."""
from dataclasses import dataclass


@dataclass
class Row:
    name: str
    unit: str
    thing: float
    bound: float
    ratio: float
    sign: str = ">="
    bar: float | None = None  # None: printed, never judged

    def below(self):
        if self.bar is None:
            return False
        return self.ratio < self.bar if self.sign == ">=" else self.ratio > self.bar
