// The tab of graphs: of programs, functions and Keras models.
import {ask} from './api.js';
import {emptyTab} from './cards.js';
import {el} from './dom.js';
import {whole} from './format.js';
import {buildTree, kerasGraph} from './graph_model.js';
import {GraphView} from './graph_view.js';
import {store} from './store.js';

const PLUGINS = ['graphs', 'graph_run_metadata_graph', 'graph_run_metadata', 'graph_keras_model'];
const KINDS = {graphs: 'graph', graph_run_metadata_graph: 'traced function', graph_run_metadata: 'traced function', graph_keras_model: 'Keras model'};
const HOW = 'summary::graph(f.get_concrete_function(x).graph());';
const MOST_FOUND = 200;

class GraphTab {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.main = main;
    this.shown = 0;
    /** @type {Map<string, import('./graph_model.js').Scope>} */
    this.byName = new Map();
    this.select = el('select', {'aria-label': 'Graph', onchange: () => this.open(Number(this.select.value))});
    this.search = el('input', {type: 'search', placeholder: 'Find nodes by name or op', 'aria-label': 'Find nodes', oninput: () => this.find()});
    this.note = el('span', {class: 'note', role: 'status'});
    this.box = el('div', {class: 'graph'});
    this.details = el('div', {class: 'details'});
    this.split = el('div', {class: 'split'}, this.box, this.details);
    this.bar = el('div', {class: 'toolbar'}, this.select, this.search,
      el('button', {text: 'All of it', title: 'Key 0', onclick: () => this.view.fit()}),
      el('button', {text: 'Close all', onclick: () => this.closeAll()}), this.note);
    main.append(this.bar, this.split);
    this.view = new GraphView(this.box, scope => this.tell(scope));
    this.list();
  }

  destroy() { this.view.destroy(); }

  list() {
    const runs = store.shownRuns();
    const graphs = [...store.series.values()].filter(one => PLUGINS.includes(one.plugin) && runs.has(one.run))
      .sort((a, b) => a.run < b.run ? -1 : a.run > b.run ? 1 : PLUGINS.indexOf(a.plugin) - PLUGINS.indexOf(b.plugin));
    this.main.querySelector('.empty')?.remove();
    this.bar.hidden = this.split.hidden = graphs.length === 0;
    if (graphs.length === 0) {
      this.main.append(emptyTab('graphs', HOW));
      return;
    }
    this.select.replaceChildren(...graphs.map(one =>
      el('option', {value: String(one.id), text: `${one.run}: ${one.tag} (${KINDS[/** @type {'graphs'} */ (one.plugin)]})`})));
    const stays = graphs.some(one => one.id === this.shown);
    this.select.value = String(stays ? this.shown : graphs[0].id);
    if (!stays) this.open(graphs[0].id);
  }

  /** @param {number} id */
  async open(id) {
    this.shown = id;
    this.note.textContent = 'Reading…';
    try {
      const answer = await ask('/api/graph', {series: id});
      if (this.shown !== id) return;
      const graph = answer.keras !== undefined ? kerasGraph(answer.keras) : answer;
      const {root, byName} = buildTree(graph);
      this.byName = byName;
      this.root = root;
      this.note.textContent = root.ops > 0 ? `${whole(root.ops)} nodes` : 'This trace holds no graph.';
      this.view.set(root);
    } catch (e) {
      this.note.textContent = /** @type {Error} */ (e).message;
    }
  }

  closeAll() {
    if (!this.root) return;
    for (const scope of this.byName.values()) scope.open = false;
    this.view.set(this.root);
  }

  find() {
    const text = this.search.value.trim().toLowerCase();
    if (!text) return this.tell(this.view.selected);
    const found = [];
    for (const [name, scope] of this.byName) {
      if (name.toLowerCase().includes(text) || scope.op?.op.toLowerCase() === text) found.push(scope);
      if (found.length === MOST_FOUND) break;
    }
    this.details.replaceChildren(el('p', {class: 'note', text: found.length === 0 ? 'Nothing is called so.' :
      `${found.length}${found.length === MOST_FOUND ? ' and more' : ''} found`}), ...found.map(scope => el('div', {}, this.link(scope))));
  }

  /** @param {import('./graph_model.js').Scope} scope */
  link(scope) { return el('button', {class: 'linklike', text: scope.name, onclick: () => this.view.find(scope)}); }

  /** @param {import('./graph_model.js').Scope | null} scope */
  tell(scope) {
    if (!scope) {
      this.details.replaceChildren(el('p', {class: 'note', text:
        'Click shows what a node is, a double click or Enter opens a scope. The wheel zooms, dragging moves.'}));
      return;
    }
    const facts = el('dl');
    const fact = (/** @type {string} */ name, /** @type {any} */ value) => value && facts.append(el('dt', {text: name}), el('dd', {}, value));
    fact('name', scope.name);
    const op = scope.op;
    if (op) {
      fact('op', op.op);
      fact('device', op.device);
      for (const [name, value] of Object.entries(op.attrs)) fact(name, value);
    } else {
      fact('nodes', whole(scope.ops));
    }
    const parts = [el('h3', {text: scope.label}), facts];
    const edges = scope.parent?.edges || [];
    for (const [title, list] of /** @type {[string, import('./graph_model.js').Scope[]][]} */ ([
      ['Reads', edges.filter(edge => edge.to === scope).map(edge => edge.from)],
      ['Read by', edges.filter(edge => edge.from === scope).map(edge => edge.to)]])) {
      if (list.length > 0) parts.push(el('h4', {text: title}), ...list.slice(0, 50).map(one => el('div', {}, this.link(one))));
    }
    if (op && op.inputs.length > 0) parts.push(el('h4', {text: 'Inputs'}), ...op.inputs.slice(0, 50).map(name => el('div', {class: 'note', text: name})));
    if (scope.children.size > 0) {
      parts.unshift(el('button', {text: scope.open ? 'Close' : 'Open', onclick: () => {
        this.view.toggle(scope);
        this.tell(scope);
      }}));
    }
    this.details.replaceChildren(...parts);
  }
}

export const graphs = {
  name: 'graphs',
  title: 'Graphs',
  plugins: PLUGINS,
  /** @param {HTMLElement} main */
  mount(main) {
    const tab = new GraphTab(main);
    return {update: (/** @type {any} */ change) => {
      if (!change.shape) return;
      tab.list();
      tab.view.draw();
    }, destroy: () => tab.destroy()};
  },
};
