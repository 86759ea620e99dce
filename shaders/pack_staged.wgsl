// <%= it.name %>: an operand as [group][depth][rows], depth = tap·channels + channel, both padded with zeros. Read along its
// own depth (<%= it.tapFirst ? "taps" : "channels" %> first), turned around in workgroup memory, and written along the rows<%= it.width === 4 ? ", by vectors of four" : "" %>.
<%= it.declarations %>

var<workgroup> tile: array<array<<%= it.type %>, <%= it.tileRows + 1 %>>, <%= it.tileDepth %>>;

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  let q0 = (id % <%= it.depthTiles %>) * <%= it.tileDepth %>u;
  let row0 = (id / <%= it.depthTiles %>) % <%= it.rowTiles %> * <%= it.tileRows %>u;
  let group = id / (<%= it.depthTiles %> * <%= it.rowTiles %>);
<%
const divided = (index) => it.width === 1 ? index : `(${index}) / ${it.width}u`;
const lanes = it.tileDepth / it.width;
const across = it.tileRows / it.width;
-%>
  {
    // What a thread loads lies in one column of the tile: of one tap.
    let place = t % <%= lanes %>u * <%= it.width %>u;
    let q = q0 + place;
<% if (it.tapFirst) { -%>
    let channel = q / <%= it.taps %>;
    let from_tap = q % <%= it.taps %>;
    let tap = 0u;
<% } else { -%>
    let channel = <%= it.toChannel("q") %>;
    let tap = <%= it.toTapPlace("q") %>;
    let from_tap = <%= it.fromTap %>;
<% } -%>
    let offset = group * <%= it.groupStride %> + channel * <%= it.channelStride %> + from_tap * <%= it.tapStride %>;
    let there = channel < <%= it.channels %> && tap < <%= it.taps %>;
<% for (let i = 0; i < it.tileRows; i += 256 / lanes) { -%>
    let at<%= i %> = t / <%= lanes %>u + <%= i %>u;
    let source_row<%= i %> = row0 + at<%= i %>;
    let loaded<%= i %> = <%= it.load(divided(`offset + source_row${i} * ${it.rowStride}`)) %>;
<% } -%>
<% for (let i = 0; i < it.tileRows; i += 256 / lanes) { -%>
    let value<%= i %> = select(<%= it.zero %>, loaded<%= i %>, there && source_row<%= i %> < <%= it.rows %>);
<% for (let j = 0; j < it.width; j++) { -%>
    tile[place + <%= j %>u][at<%= i %>] = value<%= i %><%= it.width === 1 ? "" : `.${"xyzw"[j]}` %>;
<% } -%>
<% } -%>
  }
  workgroupBarrier();
  let at = t % <%= across %>u * <%= it.width %>u;
  let row = row0 + at;
<% for (let i = 0; i < it.tileDepth; i += 256 / across) { -%>
  {
    let place = t / <%= across %>u + <%= i %>u;
    let q = q0 + place;
<% if (it.tapFirst) { -%>
    let from_tap = q % <%= it.taps %>;
    let tap = <%= it.toTap %>;
    let channel = q / <%= it.taps %>;
    // Beyond the last channel there is padding only, where it lies.
    let depth = select(q, <%= it.toDepth("channel", "tap") %>, q < <%= it.taps %> * <%= it.paddedChannels %>);
<% } else { -%>
    let depth = q;
<% } -%>
    if (row < <%= it.paddedRows %> && q < <%= it.depth %>) {
      <%= it.store(it.width === 1 ? "tile[place][at]" : `${it.vector}(tile[place][at], tile[place][at + 1u], tile[place][at + 2u], tile[place][at + 3u])`) %>
    }
  }
<% } -%>
}
