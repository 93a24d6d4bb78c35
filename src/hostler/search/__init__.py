"""Which configuration next, and which run goes on: pure over history.

base.py            the seam: questions to a search, and its answers
search.py          a sampler and a pruner behind one question
telling.py         history of a sweep as trials
samplers.py        samplers by name
optuna_sampler.py  Optuna's samplers, in memory
pruners.py         pruners by name; median, patience and hyperband
asha.py            successive halving without waiting
"""
