"""The REST API of the emulator, method by method.

service.py        from a request to its answer
routes.py         the method that a request means
methods.py        all methods by their name in Google's document; requests about operations
call.py           one request as its handler gets it
refusal.py        errors as Compute Engine words them
operations.py     operations and their results
pages.py          listings in pages
filters.py        the `filter` of a listing
links.py          paths and addresses of resources
instances.py      `instances.*`
disks.py          `disks.*`
images.py         `images.*`
templates.py      `instanceTemplates.*`
groups.py         `instanceGroupManagers.*`, `instanceGroups.*`
offers.py         quotas, regions, zones, machine types
secretmanager.py  Secret Manager
cloudbilling.py   prices: the Cloud Billing catalogue
"""
