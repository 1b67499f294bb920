"use strict";
// Create elements; text is never parsed as markup.

const $ = (id) => document.getElementById(id);

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") node.addEventListener("click", value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const option = (value, text) => make("option", { value }, text);
const named = (text) => make("bdi", {}, text); // isolates the text direction of names
