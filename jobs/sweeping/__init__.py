"""The sweep: what lies in a storage, compared with what the rows say lies there.

It reports objects without rows and rows without objects. Of the former it deletes only what this installation
wrote itself and knows that nobody needs, see `strays`; of the latter it says that they are lost, see `lost`.
"""

from jobs.sweeping.duty import sweep, sweep_due, want_sweep
from jobs.sweeping.report import Swept

__all__ = ["Swept", "sweep", "sweep_due", "want_sweep"]
