"""Long rollouts of compact states: operators, observers, certificates, the learner and the carrier.

Modules are imported where they are used: `from dashi.core.rollout import rollout`.
"""
