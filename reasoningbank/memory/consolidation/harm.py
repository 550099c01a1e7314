"""Items that hurt, told by pairs: the same task with the item shown, and without memory.

That a trial failed after an item was shown says nothing, since hard tasks fail with any item. Only
a task whose outcome changed tells: it succeeded without memory and failed with the item among
what was shown (hurt), or the other way round (helped). An item that does nothing is as likely to
be found at one as at the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import scipy

from reasoningbank.memory.item import Counters

__all__ = ["HarmRule", "harm_midp"]


@dataclass(frozen=True)
class HarmRule:
    """When an item is retired.

    The test is repeated whenever a pair is added, so its level is set for the whole life of an
    item: one that does nothing is retired with a chance below 5 % in its first 30 changed tasks.

    Attributes:
        least: Changed tasks (helped and hurt) below which nothing is said.
        level: The largest one-sided mid-p at which the item is retired.

    Examples:
        >>> rule = HarmRule()
        >>> rule.says(Counters(retrieved=90, failure=80))
        ''
        >>> rule.says(Counters(hurt=7, helped=1))
        ''
        >>> rule.says(Counters(hurt=7))
        'hurt 7 tasks and helped 0, one-sided mid-p 0.0039'
    """

    least: int = 6
    level: float = 0.01

    def says(self, counters: Counters) -> str:
        """Return why an item of these counters is to be retired; empty if it is not."""
        if counters.helped + counters.hurt < self.least:
            return ""
        p = harm_midp(counters)
        if p > self.level:
            return ""
        return f"hurt {counters.hurt} tasks and helped {counters.helped}, one-sided mid-p {p:.2g}"


def harm_midp(counters: Counters) -> float:
    """Return the one-sided mid-p of the exact sign test: hurt as often, or more, by chance.

    That is P(more were hurt) + P(as many were hurt) / 2, if each changed task was as likely to be
    helped as hurt (Lancaster 1961; for pairs Fagerland et al. 2013).

    Examples:
        >>> harm_midp(Counters(hurt=3)), harm_midp(Counters(hurt=2, helped=2))
        (0.0625, 0.5)
    """
    changed = counters.helped + counters.hurt
    chance = scipy.stats.binom(changed, 0.5)
    return float(chance.sf(counters.hurt) + chance.pmf(counters.hurt) / 2)
