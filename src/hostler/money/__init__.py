"""Prices and money of launches.

tariff.py    the price of a fleet
funding.py   reserves money for a launch and makes a deadline of it
shortage.py  says why a launch has no money, and what to do
"""
