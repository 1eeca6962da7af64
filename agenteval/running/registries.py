"""The registries of names that a configuration may use. The package ``files`` may not import these
registries, so they are passed to each function that reads a configuration."""

from agenteval.adapters.agents import AGENTS
from agenteval.files.config_checks import Registries
from agenteval.reporters import REPORTERS
from agenteval.verdict.run_gates import RUN_GATES

REGISTRIES = Registries(
    agents=AGENTS, gates={gate.name: gate.settings for gate in RUN_GATES}, reporters=REPORTERS
)
