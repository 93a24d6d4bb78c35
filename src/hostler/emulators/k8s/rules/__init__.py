"""Checks of the stand-in before it stores an object.

admission.py  from a client's text to an object, or a refusal; security of pods
schema.py     the published schemas, if installed
defaults.py   values where a manifest is silent
rules.py      enumerations, names, fields that exclude each other
podrules.py   rules for pods
jobrules.py   rules for Jobs
quantity.py   amounts such as 500m and 2Gi
access.py     Roles and rights
wrong.py      errors of a field, as the API words them
"""
