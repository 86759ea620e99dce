// <%= it.name %>: int8 as [group][panels][places][panel], four of the depth a word, padded with zeros.
<%= it.declarations %>

<% if (it.wide === 4) { -%>
// Bytes of four words, each with four places of one depth, as words of four depths of a place each.
fn transposed(rows: vec4u) -> vec4u {
  let even = vec2u(rows.x & 0xff00ffu, rows.z & 0xff00ffu) | (vec2u(rows.y & 0xff00ffu, rows.w & 0xff00ffu) << vec2u(8u));
  let odd = ((vec2u(rows.x, rows.z) >> vec2u(8u)) & vec2u(0xff00ffu)) | (vec2u(rows.y, rows.w) & vec2u(0xff00ff00u));
  return vec4u(
    (even.x & 0xffffu) | (even.y << 16u),
    (odd.x & 0xffffu) | (odd.y << 16u),
    (even.x >> 16u) | (even.y & 0xffff0000u),
    (odd.x >> 16u) | (odd.y & 0xffff0000u),
  );
}

<% } -%>
<%= it.begin %>
<%= it.digits %>
  let panel = far_panel * <%= it.beside %> + near_panel;
  if (panel >= <%= it.panels %>) { return; }
  let place = first_place * <%= it.wide %>u;
  let first = (panel * <%= it.panel %> + run * <%= it.deep %>u) * 4u;
  let base = group * <%= it.batchStride %>;
  let from_place = min(place, <%= it.places %> - <%= it.wide %>u);
<%
// Loads of all bytes come first, none of them in a branch, so that they travel together.
const at = (depth) => `min(first + ${depth}u, ${it.depth} - ${it.run}u)`;
const inside = (depth) => `place < ${it.places} && first + ${depth}u < ${it.depth}`;
const words = it.run === 16 ? 1 : it.deep;
for (let w = 0; w < words; w++) {
  for (let b = 0; b < 4; b += it.run) {
    const depth = 4 * w + b; -%>
  let byte<%= depth %> = base + <%= it.byte(at(depth)) %>;
  let read<%= depth %> = select(<%= it.run === 16 ? "vec4u()" : "0u" %>, <%= it.load(`byte${depth} / ${it.run === 16 ? 16 : 4}u`) %>, <%= inside(depth) %>);
<%
  }
} -%>
<% for (let w = 0; w < words; w++) {
  const rows = [0, 1, 2, 3].map((b) => `read${4 * w + b}`).join(", ");
  const bytes = [0, 1, 2, 3].map((b) => `read${4 * w + b} >> (byte${4 * w + b} % 4u * 8u)`).join(", "); -%>
<% if (it.run !== 1) { -%>
  let word<%= w %> = read<%= 4 * w %>;
<% } else if (it.wide === 4) { -%>
  let word<%= w %> = transposed(vec4u(<%= rows %>));
<% } else { -%>
  let word<%= w %> = dot(vec4u(<%= bytes %>) & vec4u(255u), vec4u(1u, 256u, 65536u, 16777216u));
<% } -%>
<% } -%>
<% if (words === 1) { -%>
  <%= it.store(0, "word0") %>
<% } else if (it.wide === 1) { -%>
  <%= it.store(0, "vec4u(word0, word1, word2, word3)") %>
<% } else { -%>
<% for (let p = 0; p < 4; p++) { -%>
  <%= it.store(p, `vec4u(word0[${p}], word1[${p}], word2[${p}], word3[${p}])`) %>
<% } -%>
<% } -%>
}
