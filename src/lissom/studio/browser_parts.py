"""All that is written by hand for the browser: styles, a node of the tree, and what scrolls the tree."""

NODE = """<q-icon v-if="props.node.icon" :name="props.node.icon" :color="props.node.iconColor" size="1.2em"
class="q-mr-xs"/><span>{{ props.node.label }}</span><span class="text-grey-6 text-caption q-ml-sm">{{ props.node.kind }}
</span>"""
# one statement of JavaScript: the part that is selected comes into view, once the tree has been drawn
SHOW_SELECTED = """setTimeout(
() => document.querySelector('.q-tree__node--selected')?.scrollIntoView({block: 'nearest'}), 200)"""
STYLE = """
.nicegui-content, .nicegui-tab-panel { padding: 0; gap: 0 }
.q-field--dense .q-field__control, .q-field--dense .q-field__marginal { min-height: 30px; height: auto }
.q-field--auto-height.q-field--dense .q-field__control, .q-field--auto-height.q-field--dense .q-field__native
  { min-height: 30px }
.q-field--dense .q-field__native, .q-field--dense .q-field__input, .q-field--dense .q-field__suffix,
.q-field--dense .q-field__prefix { font-size: 0.82rem; padding-top: 2px; padding-bottom: 2px; line-height: 1.3 }
.q-field--dense .q-field__suffix, .q-field--dense .q-field__prefix { color: #7a8699; font-size: 0.74rem }
.q-tree__node-header { padding: 1px 4px } .q-tree { font-size: 0.85rem }
.nested > .q-expansion-item__container > .q-item { padding: 2px 4px; min-height: 28px; background: #f3f5f8;
  border-radius: 4px; margin-top: 3px }
.nicegui-expansion-content { padding: 2px 0 4px 10px; gap: 0; margin-left: 4px; border-left: 2px solid #e3e7ee }
.nicegui-scroll-area .q-scrollarea__content { padding: 6px 14px 6px 6px; gap: 4px }
.nicegui-row { gap: 0.25rem } .q-menu .q-item { min-height: 30px; padding: 2px 14px; font-size: 0.85rem }
.mistake { line-height: 1.25; padding: 2px 0 4px 0 }
.calls { font-family: monospace; font-size: 0.72rem; white-space: pre-wrap; color: #445; background: #f3f5f8;
  padding: 4px 8px; border-radius: 4px; width: 100%; overflow-wrap: anywhere }
.how .q-field__native span { display: none } .how .q-field__control { padding: 0 }
.cm-editor { font-size: 0.78rem; height: 100% }
"""
