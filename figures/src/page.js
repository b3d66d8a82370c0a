// A page loads nothing: the rows are in the spec.
const refused = () => Promise.reject(new Error('this page loads nothing'));
const loader = { load: refused, sanitize: refused, http: refused, file: refused };
new vega.View(vega.parse(vegaLite.compile(spec).spec), { renderer: 'svg', container: '#figure', hover: true, loader }).run();
