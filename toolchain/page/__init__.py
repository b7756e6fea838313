"""A page that shows a build: one HTML file with everything in it.

`document` holds the values, `build` makes them from what `--json` prints, `layout` places the
network's operators, `render` writes the page. HTML, CSS and JavaScript are in `templates/page/`.
"""
