"use strict";
// The colours chosen last time, before anything is painted.

const THEMES = ["auto", "light", "dark"];
function remember(theme) {
  try {
    if (theme) localStorage.setItem("tertium-theme", theme);
    else return localStorage.getItem("tertium-theme");
  } catch {
    /* a page from disk may have no storage */
  }
  return null;
}
function setTheme(theme) {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}
let theme = THEMES.includes(remember()) ? remember() : "auto";
setTheme(theme);
