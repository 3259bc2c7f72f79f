def hold(scene, context): pass
