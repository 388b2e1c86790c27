// An element of a table, with its class and its role.
export function element(tag: string, className: string, role: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.setAttribute('role', role);
  return made;
}
