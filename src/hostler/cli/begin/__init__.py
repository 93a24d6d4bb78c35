"""Verbs under "Begin".

verbs.py             their options
init.py              `hostler init`: writes the files of a project; `--template trainer`
fleet_sections.py    fleets in them, for what is found here or `--fleet` names
import_.py           `hostler import`: writes files of other tools as ours; a folder of clouDL's
import_file.py       one such file
doctor.py            `hostler doctor`: asks for all checks
demo.py              `hostler demo`: six runs, one worker killed
demo_cloud.py        `hostler demo gce`: four runs, one emulated VM preempted
demo_story.py        text and steps that both demos share
completion.py        `hostler completion`: the shell's script
"""
