"""Has Ray carry out commands: a document on standard input, a line of JSON on standard output for each that ended."""

import json
import os
import subprocess
import sys

try:
    import ray
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

asked = json.load(sys.stdin)
cluster = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": asked["workers"], "include_dashboard": False}
ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **cluster)


# A task whose worker or node dies is tried again by Ray, and one whose command is killed by the loop below.
@ray.remote(num_cpus=1, max_retries=asked["tries"])
def carry_out(words, folder, tries):
    for left in reversed(range(tries)):
        ended = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "WEIR_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if ended.returncode in (0, 2, 3, 4) or not left:
            return ended.returncode, ended.stderr.decode(errors="replace")


waiting, most = list(enumerate(asked["commands"]))[::-1], asked["workers"] or int(ray.cluster_resources().get("CPU", 1))
at_work = {}
while waiting or at_work:
    while waiting and len(at_work) < most:
        place, words = waiting.pop()
        at_work[carry_out.remote(words, asked["folder"], asked["tries"])] = place
    for ended in ray.wait(list(at_work))[0]:
        place = at_work.pop(ended)
        try:
            code, said = ray.get(ended)
        except ray.exceptions.RayError as error:
            code, said = 1, str(error)
        print(json.dumps({"place": place, "code": code, "said": said}), flush=True)
ray.shutdown()
