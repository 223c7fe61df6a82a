"""How probable a late job is: ``stillcore sched analyze --jitter-from RUN --probabilistic``. Imported by :mod:`stillcore.sched`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """How probable it is that a job is late. Matrices are of shape (sets, most tasks of a set).

    Attributes:
        late_at_most: a bound, whatever releases have to do with one another: 1 where nothing better is known, NaN where there is no such task
            or the set found no place on its cores.
        late_at_most_if_stopped: a bound where late jobs are stopped at their deadlines; NaN for deadlines beyond periods.
        late_estimate: **no bound**: latencies independent, as observed; NaN where it would take too long.
        budgets_ns: the latest release, of all tasks at once, at which a task is in time; ``-1`` where it is late without.
        releases: how many releases bear on one job; ``-1`` where busy windows have no end that could be found.
        wakeups: wake-ups of the run's window with the fewest.
        longest_ns: the latest wake-up that was observed.
    """

    late_at_most: NDArray[np.float64]
    late_at_most_if_stopped: NDArray[np.float64]
    late_estimate: NDArray[np.float64]
    budgets_ns: NDArray[np.int64]
    releases: NDArray[np.int64]
    wakeups: int
    longest_ns: int

    def hold(self, late_at_most: float = 0.001) -> NDArray[np.bool_]:
        """Whether no job of a set is late with a probability above this, a value a set; a set without any task holds."""
        there = ~np.isnan(self.late_at_most)
        holding: NDArray[np.bool_] = np.all(~there | (self.late_at_most <= late_at_most), axis=1)
        return holding
