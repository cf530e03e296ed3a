"""Weir: measures, explains, predicts and steers memory traffic on servers whose memory comes in tiers.

Each verb of the command is a function here, with the command's options as keywords::

    import weir
    run = weir.bench.loaded(on="emr2s+cxl-a", quick=True)
    run                                  # in a notebook: what it means, charts and tables
    run.table("points").to_pandas()      # or to_polars(), to_pyarrow()

A verb runs in this process by the command's own code, and its run is kept in the command's store.
"""

from . import _commands
from ._errors import CommandError, Error, IllegalState, Interrupted, Lacking, Usage, WeirWarning
from ._runs import Column, Document, Run, Store, Table
from ._weir import __version__

__all__ = [
    "Column", "CommandError", "Document", "Error", "IllegalState", "Interrupted", "Lacking", "Run", "Store", "Table",
    "Usage", "WeirWarning", "__version__", "workloads",
]

for _name, _verb in _commands.verbs().items():
    globals()[_name] = _verb
    __all__.append(_name)
workloads = globals()["workload"].list
del _name, _verb
