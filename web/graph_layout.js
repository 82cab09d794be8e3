// Places for what a graph shows: layers from top to bottom, a scope that is open around what is in it.

/** @typedef {import('./graph_model.js').Scope} Scope */

const GAP_X = 22, GAP_Y = 34, PAD = 14, HEAD = 22;

/**
 * Gives the scope a size, and places to what it shows.
 * @param {Scope} scope
 */
export function layout(scope) {
  if (!scope.open || scope.children.size === 0) {
    const letters = scope.label.length + (scope.op ? 0 : String(scope.ops).length + 4);
    scope.width = Math.max(70, Math.min(250, letters * 7 + 26));
    scope.height = scope.op ? 26 : 34;
    return;
  }
  const children = [...scope.children.values()];
  for (const child of children) layout(child);
  const layers = order(assign(children, scope.edges), scope.edges);
  const widths = layers.map(layer => layer.reduce((sum, child) => sum + child.width + GAP_X, -GAP_X));
  const widest = Math.max(...widths, scope.label.length * 7 + 20);
  let y = HEAD + PAD;
  layers.forEach((layer, i) => {
    let x = PAD + (widest - widths[i]) / 2;
    const high = Math.max(...layer.map(child => child.height));
    for (const child of layer) {
      child.x = x;
      child.y = y + (high - child.height) / 2;
      x += child.width + GAP_X;
    }
    y += high + GAP_Y;
  });
  scope.width = widest + 2 * PAD;
  scope.height = y - GAP_Y + PAD;
}

/** A layer for each: below all it reads from, cycles (loops) cut. What nothing is connected to fills rows at the end.
 * @param {Scope[]} children @param {import('./graph_model.js').Edge[]} edges @returns {Scope[][]} */
function assign(children, edges) {
  /** @type {Map<Scope, Scope[]>} */
  const next = new Map(children.map(child => [child, []]));
  const degree = new Map(children.map(child => [child, 0]));
  for (const edge of edges) {
    next.get(edge.from)?.push(edge.to);
    degree.set(edge.to, (degree.get(edge.to) || 0) + 1);
  }
  const level = new Map(children.map(child => [child, 0]));
  const joined = new Set(edges.flatMap(edge => [edge.from, edge.to]));
  const left = new Set(children.filter(child => joined.has(child)));
  const ready = children.filter(child => joined.has(child) && degree.get(child) === 0);
  while (left.size > 0) {
    // Where only cycles are left, the first of them goes ahead.
    const child = ready.pop() || [...left][0];
    if (!left.delete(child)) continue;
    for (const to of next.get(child) || []) {
      if (!left.has(to)) continue;
      level.set(to, Math.max(level.get(to) || 0, (level.get(child) || 0) + 1));
      const rest = (degree.get(to) || 0) - 1;
      degree.set(to, rest);
      if (rest === 0) ready.push(to);
    }
  }
  /** @type {Scope[][]} */
  const layers = [];
  for (const child of children) {
    if (!joined.has(child)) continue;
    const at = level.get(child) || 0;
    (layers[at] = layers[at] || []).push(child);
  }
  const full = layers.filter(Boolean);
  const alone = children.filter(child => !joined.has(child));
  const row = Math.max(6, Math.ceil(Math.sqrt(alone.length)));
  for (let i = 0; i < alone.length; i += row) full.push(alone.slice(i, i + row));
  return full;
}

/** Neighbours near each other: each layer is sorted by the middle of what it is connected to, down and up in turn.
 * @param {Scope[][]} layers @param {import('./graph_model.js').Edge[]} edges */
function order(layers, edges) {
  /** @type {Map<Scope, Scope[]>} */
  const up = new Map(), down = new Map();
  const add = (/** @type {Map<Scope, Scope[]>} */ map, /** @type {Scope} */ key, /** @type {Scope} */ value) => {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  };
  for (const edge of edges) {
    add(up, edge.to, edge.from);
    add(down, edge.from, edge.to);
  }
  /** @type {Map<Scope, number>} */
  const place = new Map();
  const number = (/** @type {Scope[]} */ layer) => layer.forEach((child, i) => place.set(child, (i + 0.5) / layer.length));
  layers.forEach(number);
  for (let sweep = 0; sweep < 4; sweep++) {
    const near = sweep % 2 === 0 ? up : down;
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const middle = new Map(layer.map(child => {
        const list = near.get(child) || [];
        return [child, list.length === 0 ? place.get(child) || 0 : list.reduce((/** @type {number} */ sum, /** @type {Scope} */ one) => sum + (place.get(one) || 0), 0) / list.length];
      }));
      layer.sort((a, b) => (middle.get(a) || 0) - (middle.get(b) || 0));
      number(layer);
    }
  }
  return layers;
}
