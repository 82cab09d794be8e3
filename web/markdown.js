// Markdown as elements. Every element is made here and every text becomes a text node, so that no text of a file can
// bring elements, attributes or scripts of its own. Pictures are not loaded; links lead to http and https alone.
import {el} from './dom.js';

/** @param {string} source @returns {HTMLElement} */
export function markdown(source) {
  if (source.length > LONGEST) return el('pre', {text: source});
  const root = el('div', {class: 'markdown'});
  const lines = source.replace(/\r\n?/g, '\n').split('\n');
  blocks(root, lines, 0);
  return root;
}

const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MOST_DEPTH = 12;
const LONGEST = 60000;  // longer texts are shown as they are

/** @param {HTMLElement} root @param {string[]} lines @param {number} depth */
function blocks(root, lines, depth) {
  /** @type {string[]} */
  let paragraph = [];
  const flush = () => {
    if (paragraph.length > 0) root.append(inline(el('p'), paragraph.join('\n')));
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const fence = /^ {0,3}(```+|~~~+)/.exec(line);
    const heading = HEADING.exec(line);
    if (fence) {
      flush();
      const code = [];
      for (i++; i < lines.length && !lines[i].trim().startsWith(fence[1]); i++) code.push(lines[i]);
      root.append(el('pre', {}, el('code', {text: code.join('\n')})));
    } else if (/^ {4}\S/.test(line) && paragraph.length === 0) {
      const code = [];
      for (; i < lines.length && (/^ {4}/.test(lines[i]) || lines[i].trim() === ''); i++) code.push(lines[i].slice(4));
      i--;
      root.append(el('pre', {}, el('code', {text: code.join('\n').trimEnd()})));
    } else if (line.trim() === '') {
      flush();
    } else if (heading) {
      flush();
      root.append(inline(el(`h${heading[1].length}`), heading[2]));
    } else if (RULE.test(line)) {
      flush();
      root.append(el('hr'));
    } else if (line.trimStart().startsWith('>') && depth < MOST_DEPTH) {
      flush();
      const quoted = [];
      for (; i < lines.length && lines[i].trimStart().startsWith('>'); i++) quoted.push(lines[i].trimStart().replace(/^> ?/, ''));
      i--;
      const quote = el('blockquote');
      blocks(quote, quoted, depth + 1);
      root.append(quote);
    } else if (ITEM.test(line) && depth < MOST_DEPTH) {
      flush();
      i = list(root, lines, i, depth);
    } else if (line.includes('|') && i + 1 < lines.length && lines[i + 1].includes('-') && DIVIDER.test(lines[i + 1])) {
      flush();
      const table = el('table', {}, row('th', line));
      for (i += 2; i < lines.length && lines[i].includes('|'); i++) table.append(row('td', lines[i]));
      i--;
      root.append(table);
    } else {
      paragraph.push(line.trim());
    }
  }
  flush();
}

/** @param {HTMLElement} root @param {string[]} lines @param {number} i @param {number} depth @returns {number} its last line */
function list(root, lines, i, depth) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[i]));
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const node = el(ordered ? 'ol' : 'ul');
  if (ordered) node.start = parseInt(first[2], 10);
  root.append(node);
  while (i < lines.length) {
    const item = ITEM.exec(lines[i]);
    if (!item || item[1].length !== indent || /\d/.test(item[2]) !== ordered) break;
    const inside = [item[3]];
    for (i++; i < lines.length; i++) {
      const next = ITEM.exec(lines[i]);
      if (next && next[1].length <= indent) break;
      if (!next && (lines[i].trim() === '' || !/^\s/.test(lines[i]))) break;
      inside.push(lines[i].slice(Math.min(indent + 2, lines[i].search(/\S/))));
    }
    const entry = el('li');
    if (inside.length === 1) inline(entry, inside[0]);
    else blocks(entry, inside, depth + 1);
    node.append(entry);
  }
  return i - 1;
}

/** @param {string} kind @param {string} line */
function row(kind, line) {
  const cells = line.trim().replace(/^\||\|$/g, '').split('|');
  return el('tr', {}, ...cells.map(cell => inline(el(kind), cell.trim())));
}

const MARK = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|__(?=\S)([\s\S]*?\S)__|\*(?=\S)([^*]*?\S)\*|\b_(?=\S)([^_]*?\S)_\b|~~(?=\S)([^~]*?\S)~~|\[([^\]]*)\]\(([^()\s]*)\)|(https?:\/\/[^\s<>()]+)|\\([\\`*_{}[\]()#+.!|~-])/;

/** @template {HTMLElement} T @param {T} node @param {string} text @param {number} [depth] @returns {T} */
function inline(node, text, depth = 0) {
  while (text !== '') {
    const found = depth < MOST_DEPTH ? MARK.exec(text) : null;
    if (!found) {
      node.append(text);
      break;
    }
    node.append(text.slice(0, found.index));
    text = text.slice(found.index + found[0].length);
    const [, , code, strong, strong2, soft, soft2, gone, label, target, bare, escaped] = found;
    if (code !== undefined) node.append(el('code', {text: code.trim()}));
    else if (strong ?? strong2) node.append(inline(el('strong'), strong ?? strong2, depth + 1));
    else if (soft ?? soft2) node.append(inline(el('em'), soft ?? soft2, depth + 1));
    else if (gone !== undefined) node.append(inline(el('del'), gone, depth + 1));
    else if (target !== undefined) node.append(link(target, label));
    else if (bare !== undefined) node.append(link(bare, bare));
    else node.append(escaped);
  }
  return node;
}

/** @param {string} target @param {string} label */
function link(target, label) {
  if (!/^https?:\/\//i.test(target)) return document.createTextNode(label);
  return el('a', {href: target, rel: 'noopener noreferrer', target: '_blank', text: label || target});
}
