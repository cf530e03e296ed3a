# Made by tests/python/stubs.py from the list of commands.
from typing import Any, Dict, Iterable, Iterator, List, Literal, NamedTuple, Optional, Union
import os

Value = Union[str, int, float, os.PathLike[str]]
Values = Union[Value, Iterable[Value]]

__version__: str

class WeirWarning(UserWarning): ...

class Error(Exception):
    code: int
    run: Any

class Usage(Error): ...
class Lacking(Error): ...
class IllegalState(Error): ...
class CommandError(Error): ...

class Interrupted(KeyboardInterrupt):
    code: int
    run: Any

class Column(NamedTuple):
    type: str
    unit: str
    doc: str

class Table:
    name: str
    def __init__(self, table: Any) -> None: ...
    @property
    def columns(self) -> Dict[str, Column]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def to_pyarrow(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def to_pandas(self) -> Any: ...

class Document:
    def __init__(self, text: str) -> None: ...
    @property
    def json(self) -> str: ...
    @property
    def document(self) -> Any: ...
    def __getitem__(self, key: str) -> Any: ...
    @property
    def tables(self) -> Dict[str, Table]: ...
    def table(self, name: Optional[str] = None) -> Table: ...
    def _repr_html_(self) -> Optional[str]: ...

class Run(Document):
    def __init__(self, name: Union[str, int], store: Any = None, text: str = "") -> None: ...
    @property
    def summary(self) -> Dict[str, Any]: ...
    @property
    def id(self) -> int: ...
    @property
    def partial(self) -> bool: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...
    def samples(self) -> Table: ...
    def resume(self, **options: Any) -> Run: ...

class Store:
    path: Optional[str]
    def __init__(self, path: Any = None) -> None: ...
    def __fspath__(self) -> str: ...
    def list(self, **filters: Any) -> Document: ...
    def open(self, name: Union[str, int] = "last") -> Run: ...
    def __getitem__(self, name: Union[str, int]) -> Run: ...
    def __iter__(self) -> Iterator[Run]: ...
    def __len__(self) -> int: ...

def topo(*, storage: Optional[Value] = None, write_device: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
    """Show tiers, caches and cores, and the capabilities that are missing"""
    ...

def doctor(*, record: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
    """Show what would spoil a measurement or tiering, and the command that fixes it"""
    ...

class _place:
    """Put memory on tiers and check that, or say which objects of a program may live on a slower one"""
    def __call__(self, *, tier: Optional[Values] = None, policy: Optional[Literal['bind', 'preferred', 'interleave', 'weighted-interleave']] = None, size: Optional[Value] = None, move_to: Optional[Values] = None, hold: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Put memory on tiers and check that, or say which objects of a program may live on a slower one"""
        ...
    def advise(self, workload: Optional[Value] = None, *, command: Optional[Values] = None, for_: Optional[Value] = None, out: Optional[Value] = None, tier: Optional[Value] = None, from_: Optional[Value] = None, max_loss: Optional[Value] = None, free: Optional[Value] = None, whole: bool = False, verify: bool = False, threads: Optional[Value] = None, pid: Optional[Value] = None, interval: Optional[Value] = None, writes: bool = False, tag: Optional[Union[bool, Value]] = None, policy: Optional[Value] = None, class_: Optional[Values] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say which objects of a workload, or of a process, may live on a slower tier"""
        ...
    def objects(self, *, pid: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show what a process of this host has in its memory, and on which tiers"""
        ...
    def apply(self, *objects: Values, pid: Optional[Value] = None, rate: Optional[Value] = None, undo: Optional[Value] = None, verify: bool = False, measure: Optional[Value] = None, lower: bool = False, repeats: Optional[Value] = None, window: Optional[Value] = None, settle: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Move objects of a process of this host to tiers"""
        ...
    def watch(self, *, pid: Optional[Value] = None, tier: Optional[Value] = None, from_: Optional[Value] = None, free: Optional[Value] = None, rate: Optional[Value] = None, window: Optional[Value] = None, cold: Optional[Value] = None, hot: Optional[Value] = None, cold_windows: Optional[Value] = None, hot_windows: Optional[Value] = None, for_: Optional[Value] = None, undo: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Keep cold objects of a process on a slower tier, and hot ones on the fast tier"""
        ...
    def restore(self, file: Optional[Value] = None, *, rate: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Move objects back to where they were"""
        ...
    def offload(self, *, tier: Optional[Value] = None, from_: Optional[Value] = None, operator: Optional[Value] = None, rdma: Optional[Value] = None, share: Optional[Values] = None, local: Optional[Values] = None, far: Optional[Values] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say how much of an operator's data may be on a slower tier, with threads of its own there"""
        ...
    def stage(self, *, tier: Optional[Value] = None, to: Optional[Value] = None, operator: Optional[Value] = None, threads: Optional[Value] = None, copier: Optional[Value] = None, copy_threads: Optional[Value] = None, queries: Optional[Values] = None, shared: Optional[Value] = None, own: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say whether columns that queries share are copied from a slower tier first, or read there"""
        ...
    def levels(self, *, tier: Optional[Values] = None, from_: Optional[Value] = None, max_loss: Optional[Value] = None, threads: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say what each kind of a database's objects loses on each slower tier"""
        ...
    def share(self, *, tier: Optional[Value] = None, structure: Optional[Values] = None, hosts: Optional[Values] = None, items: Optional[Value] = None, fan_out: Optional[Value] = None, writes: Optional[Value] = None, skew: Optional[Value] = None, cache: Optional[Value] = None, snoop_filter: Optional[Value] = None, operations: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Count what hosts that share memory pay for coherence, structure by structure"""
        ...
    def disaggregated(self, *, tier: Optional[Value] = None, payload: Optional[Values] = None, program: Optional[Values] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Compare methods that reach memory of another server: CXL, RDMA, a key-value store, swap"""
        ...
    def files(self, *, tier: Optional[Value] = None, threads: Optional[Values] = None, size: Optional[Value] = None, cache: Optional[Value] = None, held: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Compare file systems on a slower tier: page cache, direct access, attached pages"""
        ...
    def neighbours(self, *, dataset: Optional[Values] = None, tier: Optional[Value] = None, from_: Optional[Value] = None, budget: Optional[Value] = None, devices: Optional[Value] = None, nodes: Optional[Value] = None, queries: Optional[Value] = None, once: bool = False, vectors: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say what each step of a nearest-neighbour search costs with its data in a pool"""
        ...

place: _place

class _platforms:
    """List, show and check platform files"""
    def __call__(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List servers and devices that have a platform file"""
        ...
    def list(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List servers and devices that have a platform file"""
        ...
    def show(self, platform: Optional[Value] = None, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show every number of a machine and its source"""
        ...
    def check(self, *files: Values, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Check platform files for mistakes"""
        ...
    def fit(self, *from_: Values, output: Optional[Value] = None, base: Optional[Value] = None, set: Optional[Values] = None, tier: Optional[Values] = None, threads: Optional[Value] = None, traffic: Optional[Value] = None, clock: Optional[Value] = None, quick: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Make the file of a machine from what was measured on it"""
        ...
    def import_(self, config: Optional[Value] = None, *, base: Optional[Value] = None, output: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Make a file with the memory of a configuration of Ramulator 2 or gem5"""
        ...

platforms: _platforms

class _workload:
    """List, show, check and run descriptions of programs"""
    def __call__(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List the workloads of the library"""
        ...
    def list(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List the workloads of the library"""
        ...
    def show(self, workload: Optional[Value] = None, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show a workload and its sources"""
        ...
    def check(self, *files: Values, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Check workload files for mistakes"""
        ...
    def run(self, workload: Optional[Value] = None, *, tier: Optional[Values] = None, place: Optional[Values] = None, pages: Optional[Value] = None, no_prefetch: bool = False, threads: Optional[Value] = None, accesses: Optional[Value] = None, rate: Optional[Values] = None, each: bool = False, size: Optional[Value] = None, for_: Optional[Value] = None, connections: Optional[Value] = None, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Run a workload: on a model what it costs, on this host the real program"""
        ...
    def import_(self, file: Optional[Value] = None, *, as_: Optional[Value] = None, share: Optional[Value] = None, out: Optional[Value] = None, cpi: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Describe a program from a trace of its memory accesses"""
        ...
    def record(self, *, command: Optional[Values] = None, for_: Optional[Value] = None, with_: Optional[Value] = None, share: Optional[Value] = None, time_first: bool = False, children: bool = False, tag: Optional[Union[bool, Value]] = None, out: Optional[Value] = None, cpi: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Describe a command: run it under a tracer of its memory accesses"""
        ...

workload: _workload

class _bench:
    """Characterise a machine"""
    def __call__(self, *, file: Optional[Value] = None, resume: Optional[Union[bool, Value]] = None, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Characterise a machine"""
        ...
    def latency(self, *, tier: Optional[Values] = None, op: Optional[Values] = None, burst: Optional[Values] = None, size: Optional[Values] = None, locality: Optional[Values] = None, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How long one access takes on an idle machine, by working set"""
        ...
    def tail(self, *, tier: Optional[Values] = None, beside: Optional[Values] = None, threads: Optional[Values] = None, deterministic: bool = False, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How long single requests take, to p99.999, alone and under load"""
        ...
    def bandwidth(self, *, tier: Optional[Values] = None, op: Optional[Values] = None, threads: Optional[Values] = None, size: Optional[Value] = None, no_prefetch: bool = False, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How many bytes a second threads move, by instruction and thread count"""
        ...
    def loaded(self, *, tier: Optional[Values] = None, mix: Optional[Values] = None, threads: Optional[Values] = None, host: Optional[Value] = None, pause: Optional[Values] = None, arrivals: Optional[Value] = None, pattern: Optional[Value] = None, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How latency grows with the bandwidth that others draw, by mix"""
        ...
    def random(self, *, tier: Optional[Values] = None, op: Optional[Values] = None, block: Optional[Values] = None, threads: Optional[Values] = None, size: Optional[Value] = None, no_prefetch: bool = False, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How many bytes a second threads move in blocks at random"""
        ...
    def stream(self, *, tier: Optional[Values] = None, kernel: Optional[Values] = None, op: Optional[Values] = None, threads: Optional[Values] = None, sockets: Optional[Values] = None, affinity: Optional[Values] = None, size: Optional[Value] = None, no_prefetch: bool = False, quick: bool = False, dax: Optional[Value] = None, durable: Optional[Values] = None, block: Optional[Value] = None, elements: Optional[Value] = None, times: Optional[Value] = None, force: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """STREAM's four kernels"""
        ...
    def movement(self, *, tier: Optional[Values] = None, source: Optional[Values] = None, method: Optional[Values] = None, threads: Optional[Values] = None, batch: Optional[Values] = None, block: Optional[Values] = None, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How fast bytes are copied within and between tiers, by method"""
        ...
    def share(self, *, tier: Optional[Values] = None, cores: Optional[Values] = None, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """How long two cores take to hand one line over"""
        ...
    def nodes(self, *, tier: Optional[Values] = None, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Latency and bandwidth from each socket to each memory"""
        ...
    def all(self, *, tier: Optional[Values] = None, quick: bool = False, yes: bool = False, repeat: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Every experiment, in one document"""
        ...

bench: _bench

def accept(*, against: Optional[Value] = None, baseline: Optional[Value] = None, worse: Optional[Value] = None, repeat: Optional[Value] = None, quick: bool = False, size: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Hold a server against its data sheet, its firmware, a platform or an earlier run"""
    ...

def interplay(*, victims: Optional[Values] = None, aggressors: Optional[Values] = None, threads: Optional[Values] = None, rate: Optional[Values] = None, requests: Optional[Value] = None, size: Optional[Value] = None, preset: Optional[Value] = None, buffered: bool = False, quick: bool = False, repeat: Optional[Value] = None, command: Optional[Values] = None, yes: bool = False, storage: Optional[Value] = None, write_device: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Show which tenants slow which others on a socket, by how much, and where"""
    ...

class _counters:
    """Count a command here, show how to count it elsewhere, and show counts"""
    def __call__(self, *, cpu: Optional[Value] = None, counters: Optional[Values] = None, uncore: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List the counters of a microarchitecture, and the perf commands for them"""
        ...
    def record(self, *, command: Optional[Values] = None, interval: Optional[Value] = None, out: Optional[Value] = None, counters: Optional[Values] = None, all: bool = False, pid: Optional[Value] = None, uncore: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Count a command on this host, from its first instruction, with all its children"""
        ...
    def list(self, *, cpu: Optional[Value] = None, counters: Optional[Values] = None, uncore: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List the counters of a microarchitecture, and the perf commands for them"""
        ...
    def show(self, file: Optional[Value] = None, *, cpu: Optional[Value] = None, cgroup: Optional[Value] = None, missing: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show a file of counters: of weir, or of perf stat (text, -x, or -j)"""
        ...

counters: _counters

def explain(workload: Optional[Value] = None, *, tier: Optional[Values] = None, no_prefetch: bool = False, threads: Optional[Value] = None, beside: Optional[Value] = None, rate: Optional[Value] = None, requests: Optional[Value] = None, command: Optional[Values] = None, pid: Optional[Value] = None, interval: Optional[Value] = None, for_: Optional[Value] = None, size: Optional[Value] = None, idle: Optional[Values] = None, counters: Optional[Value] = None, against: Optional[Value] = None, cpu: Optional[Value] = None, out: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Show where a workload loses its cycles, and why it is slower on another tier"""
    ...

def calibrate(*, tier: Optional[Value] = None, from_: Optional[Value] = None, held_out: Optional[Value] = None, coverage: Optional[Value] = None, interleave: bool = False, output: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Fit the slowdown model for a machine and one of its tiers"""
    ...

def predict(workload: Optional[Value] = None, *, population: Optional[Value] = None, verify: bool = False, threads: Optional[Value] = None, tier: Optional[Value] = None, from_: Optional[Value] = None, command: Optional[Values] = None, counters: Optional[Values] = None, cpu: Optional[Value] = None, evaluate: Optional[Value] = None, export: Optional[Value] = None, model: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Predict how slow a workload would be on a tier, from one run on local memory"""
    ...

class _tune:
    """Find the share of a workload's pages that should be on a slower tier"""
    def interleave(self, workload: Optional[Value] = None, *, command: Optional[Values] = None, tier: Optional[Value] = None, from_: Optional[Value] = None, verify: bool = False, threads: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Spread a workload's pages over two tiers by weights"""
        ...

tune: _tune

class _steer:
    """Protect the fast tier: limit the tenants that use the slow one"""
    def run(self, *, scenario: Optional[Value] = None, config: Optional[Value] = None, protect: Optional[Values] = None, restrain: Optional[Values] = None, rate: Optional[Value] = None, auto: bool = False, fast: Optional[Value] = None, probe: Optional[Literal['auto', 'always', 'never']] = None, log: Optional[Value] = None, socket: Optional[Value] = None, journal: Optional[Value] = None, means: Optional[Union[Literal['cores', 'time', 'allocation', 'clock'], Iterable[Literal['cores', 'time', 'allocation', 'clock']]]] = None, controller: Optional[Literal['weir', 'miku', 'quota', 'frequency', 'allocation', 'isolation', 'none']] = None, window: Optional[Value] = None, period: Optional[Value] = None, for_: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Limit the tenants of the slow tier, as far as others need the fast one"""
        ...
    def dry_run(self, *, scenario: Optional[Value] = None, config: Optional[Value] = None, protect: Optional[Values] = None, restrain: Optional[Values] = None, rate: Optional[Value] = None, auto: bool = False, fast: Optional[Value] = None, probe: Optional[Literal['auto', 'always', 'never']] = None, log: Optional[Value] = None, socket: Optional[Value] = None, journal: Optional[Value] = None, means: Optional[Union[Literal['cores', 'time', 'allocation', 'clock'], Iterable[Literal['cores', 'time', 'allocation', 'clock']]]] = None, controller: Optional[Literal['weir', 'miku', 'quota', 'frequency', 'allocation', 'isolation', 'none']] = None, window: Optional[Value] = None, period: Optional[Value] = None, for_: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """The same without a write: every decision is made, and no tenant is limited"""
        ...
    def status(self, *, config: Optional[Value] = None, socket: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show the status of a running controller"""
        ...
    def top(self, *, scenario: Optional[Value] = None, config: Optional[Value] = None, protect: Optional[Values] = None, restrain: Optional[Values] = None, rate: Optional[Value] = None, auto: bool = False, fast: Optional[Value] = None, probe: Optional[Literal['auto', 'always', 'never']] = None, log: Optional[Value] = None, socket: Optional[Value] = None, journal: Optional[Value] = None, means: Optional[Union[Literal['cores', 'time', 'allocation', 'clock'], Iterable[Literal['cores', 'time', 'allocation', 'clock']]]] = None, controller: Optional[Literal['weir', 'miku', 'quota', 'frequency', 'allocation', 'isolation', 'none']] = None, window: Optional[Value] = None, period: Optional[Value] = None, for_: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show live which tenants are limited, and why: of this host, or of a scenario"""
        ...
    def calibrate(self, *, out: Optional[Value] = None, config: Optional[Value] = None, window: Optional[Value] = None, size: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Measure the values of this host, or of a model, that controllers need"""
        ...
    def restore(self, *, config: Optional[Value] = None, journal: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Restore what a killed run has left changed"""
        ...
    def explain(self, decision: Optional[Value] = None, *, log: Optional[Value] = None, config: Optional[Value] = None, run: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Explain a decision"""
        ...
    def scenarios(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List the scenarios for models"""
        ...

steer: _steer

class _tier:
    """Place pages on fast and slow tiers: compare policies on a model, or set the kernel's own"""
    def simulate(self, *, workload: Optional[Value] = None, ratio: Optional[Value] = None, policy: Optional[Values] = None, for_: Optional[Value] = None, size: Optional[Value] = None, threads: Optional[Value] = None, fast: Optional[Value] = None, slow: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Compare policies of page placement on the model of a machine"""
        ...
    def profile(self, *, workload: Optional[Value] = None, size: Optional[Value] = None, tier: Optional[Value] = None, sampler: Optional[Literal['bits', 'events']] = None, period: Optional[Value] = None, scan: Optional[Value] = None, for_: Optional[Value] = None, interval: Optional[Value] = None, hot: Optional[Value] = None, warm: Optional[Value] = None, target: Optional[Value] = None, trace: Optional[Value] = None, min_regions: Optional[Value] = None, max_regions: Optional[Value] = None, sample: Optional[Value] = None, loads_per_s: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say which pages are touched how often: of a workload on a model, of processes of this host, of a trace"""
        ...
    def population(self, *, count: Optional[Value] = None, policy: Optional[Values] = None, size: Optional[Value] = None, for_: Optional[Value] = None, fast: Optional[Value] = None, slow: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Compare policies on workloads that are drawn at random"""
        ...
    def advise(self, source: Optional[Value] = None, *, ratio: Optional[Value] = None, fast_memory: Optional[Value] = None, loss: Optional[Value] = None, policy: Optional[Values] = None, mlp: Optional[Values] = None, stalled: Optional[Value] = None, writes: Optional[Values] = None, threads: Optional[Value] = None, variations: Optional[Value] = None, for_: Optional[Value] = None, fast: Optional[Value] = None, slow: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say from a profile whether tiering is worth it, and how much fast memory is needed"""
        ...
    def run(self, *, demotion: Optional[Literal['on', 'off']] = None, balancing: Optional[Literal['off', 'nodes', 'tiering', 'both']] = None, promote_limit: Optional[Value] = None, weights: Optional[Values] = None, demote: Optional[Values] = None, pressure: Optional[Value] = None, move: Optional[Values] = None, move_rate: Optional[Value] = None, schemes: Optional[Values] = None, schemes_of: Optional[Value] = None, window: Optional[Value] = None, for_: Optional[Value] = None, journal: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Set the kernel's own tiering on this host, count what it does, and restore it"""
        ...

tier: _tier

class _plan:
    """Say whether servers should share memory: latency, cost, packing, and what a pool saves"""
    def latency(self, *, sockets: Optional[Values] = None, core: Optional[Value] = None, dram: Optional[Value] = None, port: Optional[Value] = None, flight: Optional[Value] = None, retimer: Optional[Value] = None, acl: Optional[Value] = None, noc: Optional[Value] = None, arbitration: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say how long a load from a pool takes, by the components it passes"""
        ...
    def cost(self, *, prices: Optional[Value] = None, servers: Optional[Value] = None, vcpus: Optional[Value] = None, gb_per_vcpu: Optional[Values] = None, pool_price: Optional[Values] = None, cut: Optional[Value] = None, saved: Optional[Value] = None, reading: Optional[Value] = None, sockets: Optional[Value] = None, channels: Optional[Value] = None, dimm: Optional[Value] = None, pool_channels: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say when a pool pays, and what would change the answer"""
        ...
    def packing(self, *, trace: Optional[Values] = None, as_: Optional[Literal['own', 'azure-vm', 'azure-packing', 'google-2019']] = None, machine_id: Optional[Value] = None, low_priority: bool = False, machine: Optional[Value] = None, machines: Optional[Value] = None, clusters: Optional[Value] = None, days: Optional[Value] = None, shift_day: Optional[Value] = None, insensitive: Optional[Value] = None, inflate: Optional[Values] = None, machines_per_pool: Optional[Values] = None, at: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Bound how many more VMs fit into pools of machines than into single ones"""
        ...
    def pool(self, *, trace: Optional[Values] = None, as_: Optional[Literal['own', 'azure-vm', 'azure-packing', 'google-2019']] = None, machine_id: Optional[Value] = None, low_priority: bool = False, machine: Optional[Value] = None, machines: Optional[Value] = None, clusters: Optional[Value] = None, days: Optional[Value] = None, shift_day: Optional[Value] = None, insensitive: Optional[Value] = None, pools: Optional[Values] = None, fixed: Optional[Values] = None, marked: Optional[Value] = None, false_positives: Optional[Value] = None, untouched: Optional[Value] = None, over_predicted: Optional[Value] = None, release_ms: Optional[Value] = None, prices: Optional[Value] = None, pool_price: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Replay a trace of VMs: memory and money that pools save, and VMs they slow down"""
        ...
    def failures(self, *, trace: Optional[Values] = None, as_: Optional[Literal['own', 'azure-vm', 'azure-packing', 'google-2019']] = None, machine_id: Optional[Value] = None, low_priority: bool = False, machine: Optional[Value] = None, machines: Optional[Value] = None, clusters: Optional[Value] = None, days: Optional[Value] = None, shift_day: Optional[Value] = None, insensitive: Optional[Value] = None, pools: Optional[Values] = None, share: Optional[Value] = None, optional: Optional[Value] = None, devices: Optional[Value] = None, interleaved: bool = False, switched: bool = False, classes: bool = False, fault: Optional[Value] = None, moments: Optional[Value] = None, rates: Optional[Value] = None, prices: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Let parts fail while a trace is replayed: VMs that each takes down, hours lost in a year, and what a second copy costs"""
        ...
    def insensitive(self, *, programs: Optional[Value] = None, tier: Optional[Value] = None, from_: Optional[Value] = None, margin: Optional[Value] = None, false_positives: Optional[Values] = None, splits: Optional[Value] = None, counters: Optional[Values] = None, export: Optional[Value] = None, model: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say which programs may be in a pool as a whole, by a random forest over their counters"""
        ...
    def untouched(self, *, trace: Optional[Values] = None, as_: Optional[Literal['own', 'azure-vm', 'azure-packing', 'google-2019']] = None, machine_id: Optional[Value] = None, low_priority: bool = False, machine: Optional[Value] = None, machines: Optional[Value] = None, clusters: Optional[Value] = None, days: Optional[Value] = None, shift_day: Optional[Value] = None, insensitive: Optional[Value] = None, over_predicted: Optional[Values] = None, train_days: Optional[Value] = None, look_every: Optional[Value] = None, model: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say how much memory of VMs is never touched, by boosted trees over the history of customers"""
        ...
    def balance(self, *, programs: Optional[Value] = None, memory: Optional[Value] = None, machine: Optional[Value] = None, tail: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Share out the allowed errors between the predictors of `insensitive` and `untouched`"""
        ...
    def coherence(self, *, break_: Optional[Values] = None, walks: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Check the coherence protocol of CXL in every state, and add up what its transactions take"""
        ...
    def kernels(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Say what address ranges that compute save of a link, and what an early notice of a write hides"""
        ...
    def trace(self, *, trace: Optional[Values] = None, as_: Optional[Literal['own', 'azure-vm', 'azure-packing', 'google-2019']] = None, machine_id: Optional[Value] = None, low_priority: bool = False, machine: Optional[Value] = None, machines: Optional[Value] = None, clusters: Optional[Value] = None, days: Optional[Value] = None, shift_day: Optional[Value] = None, insensitive: Optional[Value] = None, out: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Write a trace of VMs: a generated one, or one of Azure in Weir's columns"""
        ...

plan: _plan

def design(*, file: Optional[Value] = None, accesses: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Search a space of servers for the designs that no other dominates"""
    ...

class _persist:
    """Say whether memory is consistent after a crash: states that stores, flushes and fences leave"""
    def check(self, file: Optional[Value] = None, *, platform: Optional[Literal['adr', 'eadr', 'flush-on-fail', 'flush-on-fail-incomplete', 'shared-pool', 'page-cache', 'device-buffer']] = None, check: Optional[Value] = None, states: Optional[Value] = None, images: Optional[Value] = None, volatile: Optional[Values] = None, failure: Optional[Literal['power', 'host']] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Look at the states that a crash may leave, and find the first illegal one"""
        ...
    def record(self, *, command: Optional[Values] = None, pool: Optional[Value] = None, out: Optional[Value] = None, for_: Optional[Value] = None, map_sync: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Run a command, and write what it does to a mapped file as a trace"""
        ...
    def header(self, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Print weir_persist.h, by which a C program marks points, or writes a trace itself"""
        ...

persist: _persist

class _pool:
    """Give VMs slices of a pool of memory and take them back, scrubbed, through QEMU"""
    def create(self, file: Optional[Value] = None, *, table: Optional[Value] = None, size: Optional[Value] = None, slice: Optional[Value] = None, scrub: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Make a pool of a file or a device"""
        ...
    def start(self, file: Optional[Value] = None, *, table: Optional[Value] = None, vm: Optional[Value] = None, memory: Optional[Value] = None, untouched: Optional[Value] = None, pool: Optional[Value] = None, cpus: Optional[Value] = None, distance: Optional[Value] = None, room: Optional[Value] = None, local_node: Optional[Value] = None, limit: Optional[Value] = None, program: Optional[Values] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Start a guest whose node without processors has slices of a pool"""
        ...
    def add(self, file: Optional[Value] = None, *, table: Optional[Value] = None, vm: Optional[Value] = None, slices: Optional[Value] = None, node: Optional[Value] = None, limit: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Give free slices to a VM that runs"""
        ...
    def release(self, file: Optional[Value] = None, *, table: Optional[Value] = None, vm: Optional[Value] = None, slices: Optional[Value] = None, slice: Optional[Value] = None, limit: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Take slices back from a VM, and scrub them"""
        ...
    def recover(self, file: Optional[Value] = None, *, table: Optional[Value] = None, limit: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Finish what was interrupted, and scrub the slices of VMs that have ended"""
        ...
    def status(self, file: Optional[Value] = None, *, table: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show which VM owns which slice"""
        ...
    def arguments(self, *, memory: Optional[Value] = None, untouched: Optional[Value] = None, pool: Optional[Value] = None, cpus: Optional[Value] = None, distance: Optional[Value] = None, room: Optional[Value] = None, local_node: Optional[Value] = None, slice: Optional[Value] = None, pool_node: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Print QEMU's arguments for a guest with a node without processors"""
        ...

pool: _pool

class _namespace:
    """Name ranges of memory that hosts share: who owns them, who may map them, and scrub what is released"""
    def __call__(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show the pool: its hosts and namespaces, and which processes have them open"""
        ...
    def init(self, pool: Optional[Value] = None, *, size: Optional[Value] = None, unit: Optional[Value] = None, hosts: Optional[Values] = None, most_hosts: Optional[Value] = None, lease: Optional[Value] = None, quota: Optional[Value] = None, room: Optional[Value] = None, force: bool = False, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Make a pool of a device or file; what it has is lost"""
        ...
    def admit(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Admit one more host"""
        ...
    def create(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, size: Optional[Value] = None, align: Optional[Value] = None, mode: Optional[Value] = None, hosts: Optional[Values] = None, keep: bool = False, while_: Optional[Value] = None, lease: Optional[Value] = None, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Make a namespace of zeros"""
        ...
    def list(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show the pool: its hosts and namespaces, and which processes have them open"""
        ...
    def resize(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, size: Optional[Value] = None, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Grow a namespace where it is, move it, or shrink it"""
        ...
    def change(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, mode: Optional[Value] = None, uid: Optional[Value] = None, gid: Optional[Value] = None, hosts: Optional[Values] = None, keep: bool = False, while_: Optional[Value] = None, lease: Optional[Value] = None, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Change who may open a namespace, and how long it is kept"""
        ...
    def hand_over(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, to: Optional[Value] = None, force: bool = False, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Make another host the owner of a namespace"""
        ...
    def destroy(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Release a namespace: its range is zero before it is free"""
        ...
    def gc(self, pool: Optional[Value] = None, *, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Release what dead processes and hosts had, and finish their scrubs"""
        ...
    def fill(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, text: Optional[Value] = None, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Fill a namespace with a text"""
        ...
    def verify(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, text: Optional[Value] = None, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Check that what is free is zero, or that a namespace has a text"""
        ...
    def run(self, pool: Optional[Value] = None, name: Optional[Value] = None, *, read_only: bool = False, command: Optional[Values] = None, host: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Run a command, with the place of the namespace in its environment, and hold the namespace open"""
        ...

namespace: _namespace

def tour(*, beside: Optional[Value] = None, output: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
    """Measure this machine and a simulated CXL server, and write a report"""
    ...

def reproduce(*papers: Values, only: Optional[Values] = None, sensitivity: bool = False, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
    """Compare published figures with ours, row by row"""
    ...

class _runs:
    """List, show, compare, resume and export stored runs"""
    def __call__(self, *, machine: Optional[Value] = None, experiment: Optional[Value] = None, tier: Optional[Value] = None, since: Optional[Value] = None, limit: Optional[Value] = None, metric: Optional[Literal['gbps', 'ns']] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List runs, newest first: all of them, or those of a machine, experiment, tier or time"""
        ...
    def list(self, *, machine: Optional[Value] = None, experiment: Optional[Value] = None, tier: Optional[Value] = None, since: Optional[Value] = None, limit: Optional[Value] = None, metric: Optional[Literal['gbps', 'ns']] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """List runs, newest first: all of them, or those of a machine, experiment, tier or time"""
        ...
    def show(self, run: Optional[Value] = None, *, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Show a run as it was printed, and how to repeat it"""
        ...
    def compare(self, *runs: Values, figure: Optional[Literal['main', 'p50', 'p99', 'p999', 'p9999']] = None, limit: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Compare runs, figure by figure"""
        ...
    def resume(self, run: Optional[Value] = None, *, storage: Optional[Value] = None, write_device: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Measure what a run that was stopped still lacks"""
        ...
    def export(self, *runs: Values, as_: Optional[Literal['json', 'csv', 'parquet', 'record', 'streamer', 'mess']] = None, frame: Optional[Value] = None, output: Optional[Value] = None, samples: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Write runs to a file, or to standard output: JSON, CSV, Parquet"""
        ...
    def merge(self, *stores: Values, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
        """Add the runs of other stores to this one"""
        ...
    def import_(self, *files: Values, as_: Optional[Value] = None, tier: Optional[Values] = None, threads: Optional[Value] = None, traffic: Optional[Value] = None, clock: Optional[Value] = None, reads: Optional[Value] = None, cpu: Optional[Value] = None, machine: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Run:
        """Make a run of what another tool wrote: MLC, perf stat, PCM, STREAM, STREAMer, OCP CMS, Mess"""
        ...

runs: _runs

def report(*runs: Values, output: Optional[Value] = None, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
    """Write runs as one HTML page with charts"""
    ...

def workloads(*, on: Optional[Value] = None, store: Optional[Value] = None, seed: Optional[Value] = None, error: Optional[Value] = None, wait: Optional[Value] = None, engine: Optional[Literal['local', 'ray', 'slurm']] = None, workers: Optional[Value] = None, worker_folder: Optional[Value] = None, quiet: bool = False) -> Any:
    """List the workloads of the library"""
    ...
