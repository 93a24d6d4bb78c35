"""Verbs under "Machines".

verbs.py         their options
up.py            `hostler up`: starts workers of a fleet; `--keep`: a machine for hand work
down.py          `hostler down`: ends a fleet, and proves that nothing is left
hosts.py         the machine that a name means
ssh.py           `hostler ssh`: a shell or command there
sync.py          `hostler sync`: the project's folder there, while you edit
notebook.py      `hostler notebook`: Jupyter there
image.py         `hostler image`: lists, builds and removes images; those of containers
image_cloud.py   images of VMs
image_recipe.py  script and packages of an image, from files
prices.py        `hostler prices`: tables of prices, and newer ones
"""
