// <%= it.name %>: a tensor as [batch][rows][places][taps·channels], the last of them padded with zeros.
<%= it.declarations %>

fn element(batch: u32, row: u32, place: u32, index: u32) -> <%= it.value %> {
  let tap = index / <%= it.channels %>;
  let source = place * <%= it.stride %> + tap * <%= it.dilation %>;
  let inside = tap < <%= it.taps %> && source >= <%= it.padding %> && source - <%= it.padding %> < <%= it.size %>;
  let offset = batch * <%= it.batchStride %> + row * <%= it.rowStride %> +
    (source - <%= it.padding %>) * <%= it.sourceStride %> + index % <%= it.channels %> * <%= it.channelStride %>;
  return select(<%= it.zero %>, <%= it.load("select(0u, offset, inside)") %>, inside);
}

<%= it.begin %>
<%= it.digits %>
  <%= it.store %>
}
