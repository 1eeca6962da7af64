# Any interpreter that the author names runs this file by path, so all of them must be able to parse it.
import json
import os
import sys

LEAST = (3, 8)


def main() -> None:
    if sys.version_info < LEAST:
        what = "it is Python {}.{}".format(*sys.version_info[:2])
        remedy = "use Python {}.{} or newer".format(*LEAST)
        sys.stdout.write(json.dumps({"refused": {"of": "python", "what": what, "remedy": remedy}}) + "\n")
        sys.stdout.flush()
        return
    folder = os.path.dirname(os.path.abspath(__file__))
    if sys.path and sys.path[0] and os.path.abspath(sys.path[0]) == folder:
        del sys.path[0]  # so that the agent does not import agenteval's modules by name
    from importlib import import_module
    from types import ModuleType

    target, base, deps, settings = sys.argv[1:5]
    del sys.argv[1:]  # a script may read sys.argv itself
    package = ModuleType("_agenteval_agentside")
    package.__path__ = [folder]
    sys.modules["_agenteval_agentside"] = package
    recognize_object = import_module("_agenteval_agentside.frameworks").recognize_object
    import_module("_agenteval_agentside.targets.worker").work(
        target, base, deps, recognize_object, json.loads(settings)
    )


if __name__ == "__main__":
    main()
