"""Prices and money of launches.

tariff.py   the price of a launch, asked for and agreed
funding.py  reserves money for a launch and makes a deadline of it, or says why there is none
"""
