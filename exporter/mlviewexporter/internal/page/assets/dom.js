// Descriptions of elements, and a patch that makes the document equal to them. It
// keeps the nodes that stay, and so the focus, the selection and the place on
// the screen. Text becomes text nodes, never markup.

// h returns the description of an element. The attribute key names it among its
// siblings; css has style properties; own says that its content belongs to
// another script.
export function h(tag, attrs, ...kids) {
  return { tag, attrs: attrs || {}, kids };
}

// dim, sub and note describe text that matters less: sub in a line, note in a paragraph.
export const dim = (...kids) => h('span', { class: 'dim' }, kids);
export const note = (...kids) => h('p', { class: 'dim' }, kids);
export const sub = (...kids) => h('span', { class: 'sub' }, kids);

const present = (kid) => kid !== null && kid !== undefined && kid !== false && kid !== '';

// safeURL returns the address if it is http, https or of this page, else null.
export function safeURL(url) {
  if (typeof url !== 'string') return null;
  if (/^[#?]/.test(url) || /^\/(?![/\\])/.test(url)) return url;
  try {
    const parsed = new URL(url);
    return parsed.protocol === 'http:' || parsed.protocol === 'https:' ? parsed.href : null;
  } catch {
    return null;
  }
}

// Characters that would act on a terminal, hide text or turn its direction.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

// Sequences that set colors and the like on a terminal: they are no content.
const ansi = /\u001b\[[0-?]*[ -/]*[@-~]/g;

// visible returns the text as escaped does, without sequences for terminals.
export const visible = (text, most) => escaped(String(text).slice(0, 20000).replace(ansi, ''), most);

// escaped returns the text with such characters written as escapes, and with its end
// cut off beyond the most characters.
export function escaped(text, most = 500) {
  const all = String(text);
  const kept = all.length > most ? all.slice(0, most) + '…' : all;
  return kept.replace(unseen, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

const properties = new Set(['value', 'checked', 'disabled', 'selected', 'hidden']);

function setAttribute(el, name, value) {
  if (name === 'key' || name === 'own' || name === 'css') return;
  if (name === 'href') value = safeURL(value);
  if (properties.has(name)) {
    if (name !== 'value' || document.activeElement !== el) el[name] = value ?? (name === 'value' ? '' : false);
  } else if (value === null || value === undefined || value === false) {
    el.removeAttribute(name);
  } else {
    el.setAttribute(name, value === true ? '' : name === 'title' || name === 'aria-label' ? visible(value) : String(value));
  }
}

function update(el, node) {
  const before = el.mlAttrs || {};
  for (const name in before) if (!(name in node.attrs)) setAttribute(el, name, null);
  for (const name in node.attrs) {
    if (before[name] !== node.attrs[name] && name !== 'value') setAttribute(el, name, node.attrs[name]);
  }
  for (const name in before.css || {}) if (!node.attrs.css || !(name in node.attrs.css)) el.style.removeProperty(name);
  for (const name in node.attrs.css || {}) {
    if (!before.css || before.css[name] !== node.attrs.css[name]) el.style.setProperty(name, node.attrs.css[name]);
  }
  el.mlAttrs = node.attrs;
  if (!node.attrs.own) patch(el, node.kids);
  // The value of a select exists only with its options.
  if ('value' in node.attrs) setAttribute(el, 'value', node.attrs.value);
}

// patch makes the children of the parent equal to the descriptions and texts.
// Lists may be nested; what is null, undefined, false or empty is left out.
export function patch(parent, described) {
  const kids = described.flat(Infinity).filter(present);
  const wanted = new Set();
  for (const kid of kids) if (kid.attrs && kid.attrs.key !== undefined) wanted.add(String(kid.attrs.key));
  const keyed = new Map();
  for (const el of [...parent.childNodes]) {
    if (el.mlKey === undefined) continue;
    if (wanted.has(el.mlKey)) keyed.set(el.mlKey, el);
    else el.remove();
  }
  let at = parent.firstChild;
  for (const kid of kids) {
    if (!kid.tag) {
      const text = visible(kid, { code: 1500, pre: 10000 }[parent.localName] || 500);
      if (at && at.nodeType === Node.TEXT_NODE) {
        if (at.nodeValue !== text) at.nodeValue = text;
        at = at.nextSibling;
      } else {
        parent.insertBefore(document.createTextNode(text), at);
      }
      continue;
    }
    const key = kid.attrs.key === undefined ? undefined : String(kid.attrs.key);
    let el = key !== undefined ? keyed.get(key) : at && at.nodeType === Node.ELEMENT_NODE && at.mlKey === undefined ? at : undefined;
    if (el && el.localName !== kid.tag) el = undefined;
    if (!el) {
      el = document.createElement(kid.tag);
      el.mlKey = key;
      parent.insertBefore(el, at);
    } else if (el === at) {
      at = at.nextSibling;
    } else {
      parent.insertBefore(el, at);
    }
    update(el, kid);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
