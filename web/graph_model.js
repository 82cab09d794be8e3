// A graph as a tree of scopes: "a/b/MatMul" is an op in the scope b in the scope a.

/**
 * @typedef {{name: string, op: string, inputs: string[], device: string, attrs: Record<string, string>}} Op
 * @typedef {{name: string, label: string, op: Op | null, parent: Scope | null, children: Map<string, Scope>, ops: number,
 *   open: boolean, x: number, y: number, width: number, height: number, edges: Edge[]}} Scope
 *   op: null for a scope; x, y: inside of the parent; edges: between its children
 * @typedef {{from: Scope, to: Scope, count: number, control: boolean, shape: string}} Edge
 */

/** @param {string} name @param {string} label @param {Scope | null} parent @returns {Scope} */
function makeScope(name, label, parent) {
  return {name, label, op: null, parent, children: new Map(), ops: 0, open: false, x: 0, y: 0, width: 0, height: 0, edges: []};
}

/** @param {{nodes: Op[], functions?: {name: string, inputs: string[], nodes: Op[]}[]}} graph @returns {{root: Scope, byName: Map<string, Scope>}} */
export function buildTree(graph) {
  const root = makeScope('', 'graph', null);
  root.open = true;
  /** @type {Map<string, Scope>} */
  const byName = new Map();
  addOps(root, graph.nodes, '', byName);
  for (const one of graph.functions || []) {
    const prefix = `ƒ ${one.name}`;
    const inputs = one.inputs.map(name => ({name, op: 'Arg', inputs: [], device: '', attrs: {}}));
    addOps(root, [...inputs, ...one.nodes], prefix, byName);
  }
  const count = (/** @type {Scope} */ scope) => {
    scope.ops = scope.op ? 1 : 0;
    for (const child of scope.children.values()) scope.ops += count(child);
    return scope.ops;
  };
  count(root);
  return {root, byName};
}

/** @param {Scope} root @param {Op[]} ops @param {string} prefix a scope around them @param {Map<string, Scope>} byName */
function addOps(root, ops, prefix, byName) {
  let top = root;
  if (prefix) {
    top = makeScope(prefix, prefix, root);
    root.children.set(prefix, top);
    byName.set(prefix, top);
  }
  const key = (/** @type {string} */ name) => prefix ? `${prefix}/${name}` : name;
  /** @type {Map<string, Scope>} */
  const own = new Map();
  for (const op of ops) {
    const parts = op.name.split('/').filter(part => part !== '');
    let at = top;
    parts.forEach((part, i) => {
      let child = at.children.get(part);
      if (!child) {
        child = makeScope(key(parts.slice(0, i + 1).join('/')), part, at);
        at.children.set(part, child);
        byName.set(child.name, child);
      }
      at = child;
    });
    // An op may be a scope too ("dense" beside "dense/kernel"): it stands inside, in brackets.
    at.op = at.op || op;
    own.set(op.name, at);
  }
  for (const scope of own.values()) {
    if (scope.children.size === 0) continue;
    const inside = makeScope(`${scope.name}/(${scope.label})`, `(${scope.label})`, scope);
    inside.op = scope.op;
    scope.op = null;
    scope.children.set(inside.label, inside);
    byName.set(inside.name, inside);
    own.set(/** @type {Op} */ (inside.op).name, inside);
  }
  for (const op of ops) {
    const to = /** @type {Scope} */ (own.get(op.name));
    for (const input of op.inputs) {
      const control = input.startsWith('^');
      const from = own.get((control ? input.slice(1) : input).replace(/(:[^/:]*)?:\d+$/, ''));
      if (from && from !== to) connect(from, to, control);
    }
  }
}

/**
 * An edge between the two children of the innermost scope that holds both ends.
 * @param {Scope} from
 * @param {Scope} to
 * @param {boolean} control
 */
function connect(from, to, control) {
  const above = new Set();
  for (let s = /** @type {Scope | null} */ (from); s; s = s.parent) above.add(s);
  let b = to;
  while (b.parent && !above.has(b.parent)) b = b.parent;
  const common = b.parent;
  if (!common) return;
  let a = from;
  while (a.parent && a.parent !== common) a = a.parent;
  if (a === b) return;
  const shape = from.op?.attrs._output_shapes?.replace(/^\[(.*)\]$/, '$1') || '';
  const known = edgeIndex(common).get(`${a.name}\n${b.name}`);
  if (known) {
    known.count++;
    known.control = known.control && control;
    known.shape = '';
    return;
  }
  const edge = {from: a, to: b, count: 1, control, shape};
  common.edges.push(edge);
  edgeIndex(common).set(`${a.name}\n${b.name}`, edge);
}

/** @type {WeakMap<Scope, Map<string, Edge>>} */
const indexes = new WeakMap();
/** @param {Scope} scope */
function edgeIndex(scope) {
  let index = indexes.get(scope);
  if (!index) indexes.set(scope, index = new Map());
  return index;
}

/**
 * The layers of a Keras model, from its configuration.
 * @param {string} json
 * @returns {{nodes: Op[]}}
 */
export function kerasGraph(json) {
  const model = JSON.parse(json);
  /** @type {Op[]} */
  const nodes = [];
  addKeras(model, '', nodes);
  return {nodes};
}

/** @param {any} model @param {string} prefix @param {Op[]} nodes */
function addKeras(model, prefix, nodes) {
  const layers = model?.config?.layers || (Array.isArray(model?.config) ? model.config : []);
  let last = '';
  for (const layer of layers) {
    const name = String(layer.name || layer.config?.name || layer.class_name);
    const inbound = layer.inbound_nodes ? [...new Set(namesIn(layer.inbound_nodes))] : last ? [last] : [];
    last = name;
    const attrs = /** @type {Record<string, string>} */ ({});
    for (const [key, value] of Object.entries(layer.config || {})) {
      if (value !== null && typeof value !== 'object') attrs[key] = String(value);
      else if (Array.isArray(value) && value.every(v => typeof v !== 'object' || v === null)) attrs[key] = `[${value.join(', ')}]`;
    }
    nodes.push({name: prefix + name, op: String(layer.class_name), inputs: inbound.map(one => prefix + one), device: '', attrs});
    if (layer.config?.layers) addKeras(layer, `${prefix}${name}/`, nodes);
  }
}

/**
 * The layers that a list of inbound nodes names, in the forms of several versions.
 * @param {any} value
 * @returns {string[]}
 */
function namesIn(value) {
  if (Array.isArray(value)) {
    if (typeof value[0] === 'string' && typeof value[1] === 'number') return [value[0]];
    return value.flatMap(namesIn);
  }
  if (value && typeof value === 'object') {
    if (value.class_name === '__keras_tensor__') return namesIn(value.config?.keras_history);
    return Object.values(value).flatMap(namesIn);
  }
  return [];
}
