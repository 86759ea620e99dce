// <%= it.name %>: an operand as [group][depth][rows], depth = tap·channels + channel, both padded with zeros.
<%= it.declarations %>

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
  let row = i % <%= it.paddedRows %>;
  let depth = (i / <%= it.paddedRows %>) % <%= it.depth %>;
  let group = i / (<%= it.paddedRows %> * <%= it.depth %>);
  let channel = depth % <%= it.paddedChannels %>;
  let tap = depth / <%= it.paddedChannels %>;
  let inside = row < <%= it.rows %> && channel < <%= it.channels %>;
  let offset = group * <%= it.groupStride %> + row * <%= it.rowStride %> +
    channel * <%= it.channelStride %> + <%= it.tap %> * <%= it.tapStride %>;
  <%= it.store %>
}
