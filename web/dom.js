// Elements of the page. Text only ever becomes text nodes: nothing from a file is read as HTML.

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties] attributes; `on...` are listeners, `text` is its text, `class` its classes
 * @param {...(Node|string|null|undefined)} children
 * @returns {any} the element
 */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'text') node.textContent = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className = value;
    else if (name in node && typeof value !== 'string') /** @type {any} */ (node)[name] = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.filter(child => child !== null && child !== undefined).map(child => /** @type {Node} */ (child)));
  return node;
}

/** @param {string} id @returns {any} */
export function byId(id) { return document.getElementById(id); }

/** @param {string} colour */
export function swatch(colour) {
  const node = el('span', {class: 'swatch'});
  node.style.background = colour;
  return node;
}

/** A pattern as people type it; null: it is no regular expression. Empty: everything fits.
 * @param {string} text */
export function pattern(text) {
  try {
    return new RegExp(text, 'i');
  } catch {
    return null;
  }
}

/**
 * Saves bytes as a file of the user's.
 * @param {Blob} blob
 * @param {string} name
 */
export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  el('a', {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Calls `work` once for many requests, at most every `wait` milliseconds.
 * @param {() => void} work @param {number} wait */
export function throttle(work, wait) {
  let timer = 0, last = 0;
  return () => {
    if (timer) return;
    timer = setTimeout(() => { timer = 0; last = Date.now(); work(); }, Math.max(0, last + wait - Date.now()));
  };
}
