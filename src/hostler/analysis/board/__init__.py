"""The dashboard: a store in the browser, live."""
