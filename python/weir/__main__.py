"""``python -m weir``: the command, for workers on machines that have the package alone."""

import sys

from . import _weir


def _main() -> int:
    ran = _weir.run(sys.argv[1:], lambda line: print(line, file=sys.stderr), lambda *_: None)
    sys.stdout.write(ran.printed)
    if ran.message:
        print(f"weir: {ran.message}", file=sys.stderr)
    return 130 if ran.interrupt is not None else ran.code


if __name__ == "__main__":
    sys.exit(_main())
