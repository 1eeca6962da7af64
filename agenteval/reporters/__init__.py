"""A finished report and its verdict as text: for people, for CI systems, for programs.

Each module is one format and has ``render(report, decision, options) -> str``, which is pure: the
caller owns paths, files, the console and the exit code. Text that an agent, a tool or a model wrote
goes through ``agenteval.core.safe_text`` on its way out.

``options``           what may be asked of any reporter
``failure_text``      what went wrong, where and how to see it again: shared by all formats
``score_cells``       what judges said, as the cells of a table: shared by all formats
``judge_text``        judges that broke, the simulated user, what was scripted: shared by all formats
``issue_text``        issues, the worst first: shared by all formats
``terminal``          for people at a screen
``results_json``      the machine-readable results, with a JSON Schema
``junit_xml``         for CI systems that list tests
``github_actions``    annotations, and the summary of a step
``accepted_text``     the accept list: shared by all formats
``comparison_text``   two runs compared: shared by ``comparison_terminal``, ``_markdown`` and ``_json``
``markdown``          a whole report for a pull request or a wiki
"""
