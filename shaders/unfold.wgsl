// <%= it.name %>: a tensor as [batch][rows][places][taps·channels], the last of them padded with zeros.
<%= it.declarations %>

fn element(batch: u32, row: u32, place: u32, index: u32) -> <%= it.value %> {
  let tap = index / <%= it.channels %>;
  let source = place * <%= it.stride %> + tap * <%= it.dilation %>;
  let inside = tap < <%= it.taps %> && source >= <%= it.padding %> && source - <%= it.padding %> < <%= it.size %>;
  let offset = batch * <%= it.batchStride %> + row * <%= it.rowStride %> +
    (source - <%= it.padding %>) * <%= it.sourceStride %> + index % <%= it.channels %> * <%= it.channelStride %>;
  let at = select(0u, offset, inside);
  return select(<%= it.zero %>, <%= it.load("at") %>, inside);
}
<% if (it.bytes) { %>
// Of each the last eight bits.
fn word(a: u32, b: u32, c: u32, d: u32) -> u32 {
  return dot(vec4u(a, b, c, d) & vec4u(255u), vec4u(1u, 256u, 65536u, 16777216u));
}
<% } -%>

<%= it.begin %>
<%= it.digits %>
  <%= it.store %>
}
