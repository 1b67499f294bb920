// Requests to the annotation server. The token is the fragment of the address: it is sent in a
// header, never in a cookie or an address.

const MAX_KEEPALIVE = 20000; // characters; browsers allow 64 KiB

export const token = decodeURIComponent(location.hash.slice(1));

export async function request(path, body) {
  const options = { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
    options.keepalive = options.body.length < MAX_KEEPALIVE; // also while the page is closed
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw { kind: "offline", message: String(error) };
  }
  if (response.ok) return response;
  let message = response.statusText;
  try {
    message = (await response.json()).error;
  } catch {
    /* not an answer of ours */
  }
  const kinds = { 401: "link", 403: "link", 429: "link", 507: "disk" };
  throw { kind: kinds[response.status] || "server", message };
}

export const fetchJson = async (path, body) => (await request(path, body)).json();
